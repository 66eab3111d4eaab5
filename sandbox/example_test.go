package sandbox_test

import (
	"errors"
	"fmt"

	"tenwalls.dev/harness/sandbox"
)

// A fixed id, so that the digest below is always the same: it changes only
// with the schema or its canonical form. A program calls id.New(sandbox.PrefixJob).
func ExampleSeal() {
	job, err := sandbox.Seal(sandbox.Job{
		SchemaVersion: sandbox.SchemaVersion,
		ID:            "sjob_01h455vb4pex5vsknk084sn02q",
		Key:           "submission-12",
		Scope:         sandbox.Scope{Tenant: "school", Project: "grading"},
		Principal:     "grader",
		Image:         "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		Argv:          []string{"/bin/check", "--strict"},
		Network:       sandbox.NetworkDenied,
		Limits:        sandbox.DenyAllLimits(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(job.Digest)
	fmt.Println(job.Validate())

	job.Argv[1] = "--lenient"
	fmt.Println(errors.Is(job.Validate(), sandbox.ErrMutated))
	// Output:
	// sha256:23cb5d8d7480c62f43c33274f594ae9bacfd63416dec9c68e05050f70b26f8c4
	// <nil>
	// true
}
