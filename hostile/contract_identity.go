package hostile

// Identity is a contract check beyond the ten: be somebody.
var Identity = register(Attempt{
	Step:     0,
	Name:     "identity",
	Title:    "be somebody",
	Tries:    "reads its identity and tries to change it",
	Expected: "in force: uid and gid 65534, no supplementary groups; setuid refused",
	Why:      "nobody owns nothing, which is what the ownership refusals stand on",
	Routes: []Route{
		{Name: "nobody", Title: "read uid, gid and groups", Inside: true},
		{Name: "setuid", Title: "become root", Inside: true},
	},
})
