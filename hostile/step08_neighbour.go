package hostile

// Neighbour is step 8: read another reader's submission.
var Neighbour = register(Attempt{
	Step:     8,
	Name:     "neighbour",
	Title:    "read another reader's submission",
	Tries:    "walks its whole file system for the name and the secret of a job that runs beside it",
	Expected: "absent from the mount table, which is not the same as refused",
	Why:      "refused means it was there and permission held; absent means it was never in the mount table, and only the host can see the mount table",
	Routes: []Route{
		{Name: "walk", Title: "walk every mount for the neighbour's name and secret", Inside: true},
		{Name: "known-path", Title: "open the neighbour's files by their host path", Inside: true},
		{Name: "processes", Title: "look for the neighbour's processes", Inside: true},
	},
})
