def getVersion():
    return 0
