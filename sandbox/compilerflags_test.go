// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompilerEnvKeepsTheUsersSetting(t *testing.T) {
	t.Setenv("GOGC", "")
	if diff := cmp.Diff([]string{"GOGC=400"}, compilerEnv()); diff != "" {
		t.Errorf("without a setting (-want +got):\n%s", diff)
	}
	t.Setenv("GOGC", "50")
	if got := compilerEnv(); got != nil {
		t.Errorf("with a setting = %v, want none", got)
	}
}

// The packages that are compiled with other flags must not be those that many programs share.
func TestCompilerFlagsSpareSharedPackages(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "trueup.dev/operator").Output()
	if err != nil {
		t.Fatal(err)
	}
	var separate []string
	shared := strings.Fields(string(out))
	for _, name := range shared {
		for _, flag := range strings.Fields(compilerFlagsFile) {
			pattern := strings.TrimSuffix(strings.TrimPrefix(flag, "-gcflags="), "=-dwarf=false")
			if prefix, ok := strings.CutSuffix(pattern, "..."); ok && strings.HasPrefix(name, prefix) {
				separate = append(separate, name)
			}
		}
	}
	const most = 20
	if len(shared) < 100 || len(separate) > most {
		t.Errorf("%d of %d packages of an operator are compiled twice, want at most %d: %v",
			len(separate), len(shared), most, separate)
	}
}
