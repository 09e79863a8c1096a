// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const (
	binaryVariable = "TRUEUP_CONTROLPLANE"

	// parentVariable makes the test binary act as a parent process, see TestParentKilled.
	parentVariable = "TRUEUP_TEST_PARENT"
)

var binary string

func TestMain(m *testing.M) {
	if os.Getenv(parentVariable) != "" {
		playParent()
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	binary = os.Getenv(binaryVariable)
	if binary == "" {
		dir, err := os.MkdirTemp("", "controlplane-test-*")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "trueup-controlplane")
		build := exec.Command("go", "build", "-o", binary, "trueup.dev/controlplane/cmd/trueup-controlplane")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "go build:", err)
			return 1
		}
	}
	defer stopShared()
	return m.Run()
}
