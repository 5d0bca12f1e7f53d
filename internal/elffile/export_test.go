package elffile

var WithoutVersion = withoutVersion
