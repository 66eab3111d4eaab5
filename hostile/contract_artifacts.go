package hostile

// Artifacts is a contract check beyond the ten: smuggle an artifact.
var Artifacts = register(Attempt{
	Step:     0,
	Name:     "artifacts",
	Title:    "smuggle an artifact",
	Tries:    "offers links, folders and a named pipe where regular files were declared, and one honest artifact",
	Expected: "in force at the artifact bound: the honest one is captured, the others are refused",
	Why:      "a captured link would name a file of the host",
	Routes: []Route{
		{Name: "honest", Title: "one regular file within its cap", Inside: true},
		{Name: "symlink", Title: "a symlink to a host file", Inside: true},
		{Name: "folder", Title: "a folder", Inside: true},
		{Name: "fifo", Title: "a named pipe", Inside: true},
		{Name: "parent-symlink", Title: "a regular file below a symlinked folder", Inside: true},
	},
})
