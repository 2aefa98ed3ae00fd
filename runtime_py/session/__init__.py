"""Algorithm 1 and its state: policies, forks, files of sessions, readings."""
