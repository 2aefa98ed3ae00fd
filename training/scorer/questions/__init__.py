"""Training texts made of what people asked: articles, meetings, stories, labelled examples."""
