package hostile

// Processes is step 4: keep making processes.
var Processes = register(Attempt{
	Step:     4,
	Name:     "processes",
	Title:    "keep making processes",
	Tries:    "makes tasks until one is refused and counts every task of the job, its own included",
	Expected: "EAGAIN at the process cap for the thirty-third task, with the group counted at 32",
	Why:      "a limit applied to the wrong scope refuses the thirty-third child of one parent and allows the thirty-third process",
	Routes: []Route{
		{Name: "parent", Title: "one parent makes all", Inside: true},
		{Name: "chain", Title: "every child makes the next", Inside: true},
		{Name: "threads", Title: "threads of one process", Inside: true},
		{Name: "sessions", Title: "children that each start a session", Inside: true},
		{Name: "orphans", Title: "children orphaned by double fork", Inside: true},
	},
})
