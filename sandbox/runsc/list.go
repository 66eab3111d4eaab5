package runsc

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
)

// Processes asks the runtime itself which processes of the guest there are
// (runsc ps --format=json, a list of process ids as the guest has them). root is
// the runtime's state folder of the job. It fails while the container is not
// running.
func (c Config) Processes(ctx context.Context, root, container string) ([]int, error) {
	ctx, cancel := context.WithTimeout(ctx, c.listWithin())
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Runtime.Path, "--root="+root, "ps", "--format=json", container)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.WaitDelay = pipesWithin
	var said head
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list processes of %s: %w: %s", container, err, shorten(said.String()))
	}
	var pids []int
	if err := json.Unmarshal(out, &pids); err != nil {
		return nil, fmt.Errorf("list processes of %s: %w", container, err)
	}
	return pids, nil
}
