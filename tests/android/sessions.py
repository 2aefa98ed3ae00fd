def write_sessions(folder):
    pass
