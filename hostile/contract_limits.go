package hostile

// Granted is a contract check beyond the ten: outgrow the job's cgroup.
var Granted = register(Attempt{
	Step:     0,
	Name:     "limits",
	Title:    "outgrow the job's cgroup",
	Tries:    "the host reads back which limits are in force at the cgroup that holds the runtime",
	Expected: "in force: memory, swap and tasks as configured",
	Why:      "a limit that no attempt reaches, such as swap on a machine that has none today, is otherwise only believed",
	Routes: []Route{
		{Name: "memory", Title: "memory of the job's cgroup", Inside: false},
		{Name: "swap", Title: "swap beyond memory", Inside: false},
		{Name: "tasks", Title: "tasks of the host in the job's cgroup", Inside: false},
	},
})
