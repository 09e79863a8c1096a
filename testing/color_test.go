// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const someDiff = "  same\n- expected\n+ actual\n  -not at the start\n"

// printsDiff is the environment variable that makes TestPrintDiff print.
const printsDiff = "TRUEUP_TEST_PRINT_DIFF"

// TestPrintDiff is what TestColorDiff runs in another process.
func TestPrintDiff(t *testing.T) {
	if os.Getenv(printsDiff) == "" {
		t.Skip("only of use to TestColorDiff")
	}
	_, _ = os.Stdout.WriteString(
		printsDiff + ColorizeDiff(someDiff) + DiffRemovedColor.Sprint("-expected") + DiffAddedColor.Sprint("+actual") +
			printsDiff,
	)
}

// The colors are decided on when the program starts.
func TestColorDiff(t *testing.T) {
	tests := map[string]struct {
		env  []string
		want string
	}{
		"off": {
			want: "  same\n- expected\n+ actual\n  -not at the start\n\n-expected+actual",
		},
		"on without a terminal, with any value": {
			env: []string{"COLOR_DIFF="},
			want: "  same\n\x1b[31m- expected\x1b[0m\n\x1b[32m+ actual\x1b[0m\n  -not at the " +
				"start\n\n\x1b[31m-expected\x1b[0m\x1b[32m+actual\x1b[0m",
		},
		"on where other programs have no colors": {
			env: []string{"COLOR_DIFF=true", "NO_COLOR=1", "TERM=dumb"},
			want: "  same\n\x1b[31m- expected\x1b[0m\n\x1b[32m+ actual\x1b[0m\n  -not at the " +
				"start\n\n\x1b[31m-expected\x1b[0m\x1b[32m+actual\x1b[0m",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			executable, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), executable, "-test.run=^TestPrintDiff$")
			for _, variable := range os.Environ() {
				if !strings.HasPrefix(variable, "COLOR_DIFF=") {
					cmd.Env = append(cmd.Env, variable)
				}
			}
			cmd.Env = append(append(cmd.Env, printsDiff+"=true"), tt.env...)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			parts := strings.Split(string(out), printsDiff)
			if len(parts) != 3 {
				t.Fatalf("printed nothing: %s", out)
			}
			if diff := cmp.Diff(tt.want, parts[1]); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}
