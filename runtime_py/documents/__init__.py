"""Documents as text: plain text, Markdown, HTML, EPUB, PDF and Word, see `document.read_document`.

The libraries that read them come with the extra `documents` and are imported when one is needed.
"""
