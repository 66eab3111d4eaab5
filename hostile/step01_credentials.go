package hostile

// Credentials is step 1: read a file holding credentials.
var Credentials = register(Attempt{
	Step:     1,
	Name:     "credentials",
	Title:    "read a file holding credentials",
	Tries:    "opens canary files that are really there, owned by root with mode 0600 and holding this run's secret, plainly and by detours; looks for secrets that need no file",
	Expected: "EACCES at the file ownership, with the canary present; for detours, the refusal of the wall in front of it",
	Why:      "an absent file proves nothing: the check would pass on a host where it was simply not installed, so ENOENT is misnamed",
	Routes: []Route{
		{Name: "shadow", Title: "read /etc/shadow", Inside: true},
		{Name: "ssh-key", Title: "read the ssh key in root's home", Inside: true},
		{Name: "service-account", Title: "read the service account token of a cluster", Inside: true},
		{Name: "cloud-credentials", Title: "read the cloud credentials in root's home", Inside: true},
		{Name: "symlink", Title: "read a canary through a symlink made in scratch", Inside: true},
		{Name: "proc-root", Title: "read a canary through /proc/self/root", Inside: true},
		{Name: "init-environ", Title: "look for secrets in the environment of process 1", Inside: true},
		{Name: "hard-link", Title: "make a hard link to a canary in scratch (refused at the filter)", Inside: true},
		{Name: "hard-link-behind", Title: "make a hard link to a canary with the filter's file rule lifted", Inside: true},
		{Name: "file-handle", Title: "open a canary by file handle (refused at the filter)", Inside: true},
		{Name: "file-handle-behind", Title: "open a canary by file handle with the filter's file rule lifted", Inside: true},
		{Name: "inherited-descriptor", Title: "look for descriptors that were left open", Inside: true},
		{Name: "environment", Title: "look for variables that the job did not declare", Inside: true},
	},
})
