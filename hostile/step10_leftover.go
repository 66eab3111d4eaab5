package hostile

// Leftover is step 10: leave a process running after the answer was returned.
var Leftover = register(Attempt{
	Step:     10,
	Name:     "leftover",
	Title:    "leave a process running after the answer was returned",
	Tries:    "leaves processes behind in every way, and ends by every cap",
	Expected: "ended at the process group: no process in the job's cgroup, group or container, scratch gone, no residue",
	Why:      "measured after the result is stored, which is the moment the sandbox no longer exists: there is nothing left inside to ask",
	Routes: []Route{
		{Name: "daemon", Title: "a daemon by double fork", Inside: true},
		{Name: "session", Title: "a child in a session of its own", Inside: true},
		{Name: "ignore-signals", Title: "a child that ignores SIGTERM and SIGHUP", Inside: true},
		{Name: "stopped", Title: "a child stopped by SIGSTOP", Inside: true},
		{Name: "holds-stdout", Title: "exits while a child holds standard output", Inside: true},
		{Name: "runner-killed", Title: "the runner is killed in the middle of the job", Inside: true},
		{Name: "cancelled", Title: "the job is cancelled", Inside: true},
		{Name: "cpu-capped", Title: "the job is ended by the processor cap", Inside: false},
		{Name: "wall-capped", Title: "the job is ended by the wall clock", Inside: false},
		{Name: "memory-capped", Title: "the job is ended by the memory cap", Inside: false},
		{Name: "output-capped", Title: "the job is ended by the output cap", Inside: false},
	},
})
