package runsc_test

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"tenwalls.dev/harness/reports/attest"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/runsc"
)

// A broker lets its runner publish only what a verified attestation of a
// qualified run says, and asks again at every job: what has expired by then, or
// was taken away, accepts nothing.
func ExampleOptions() {
	trusted := []ed25519.PublicKey{ /* attest.LoadPublicKey("harness.pub") */ }
	vouch := func() (sandbox.Capabilities, error) {
		data, err := os.ReadFile("/nonexistent/attestation.json")
		if err != nil {
			return sandbox.Capabilities{}, errors.New("no attestation")
		}
		attestation, err := attest.DecodeAttestation(data)
		if err != nil {
			return sandbox.Capabilities{}, err
		}
		statement, err := attest.Verify(attestation, trusted, time.Now())
		if err != nil {
			return sandbox.Capabilities{}, err
		}
		var c sandbox.Capabilities
		if err := json.Unmarshal(statement.Capabilities, &c); err != nil {
			return sandbox.Capabilities{}, fmt.Errorf("the run qualified nothing: %w", err)
		}
		return c, nil
	}
	options := runsc.Options{Broker: "broker-1", Vouch: vouch}
	_, err := options.Vouch()
	fmt.Println(err)
	// Output: no attestation
}
