// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSharedKey(t *testing.T) {
	t.Setenv("GOGC", "")
	binary := filepath.Join(t.TempDir(), "binary")
	if err := os.WriteFile(binary, []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	key := func(o Options) string {
		t.Helper()
		c := sharedControlPlane{binary: binary, arguments: arguments(&o)}
		key, err := c.key()
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	first := key(Options{})
	if got := key(Options{Progress: os.Stdout, StartTimeout: time.Hour}); got != first {
		t.Error("options that do not shape the control plane change its key")
	}
	if got := key(Options{DisablePods: true}); got == first {
		t.Error("options that shape the control plane do not change its key")
	}
	t.Setenv("GOGC", "50")
	if got := key(Options{}); got == first {
		t.Error("the environment does not change the key")
	}
	t.Setenv("GOGC", "")
	if err := os.WriteFile(binary, []byte("22"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := key(Options{}); got == first {
		t.Error("another binary does not change the key")
	}
}

func TestSharedGrace(t *testing.T) {
	const invalid = -1
	got := map[string]time.Duration{}
	want := map[string]time.Duration{
		"": defaultSharedGrace, "off": 0, "15m": 15 * time.Minute, "0s": invalid, "-1s": invalid, "on": invalid,
	}
	for value := range want {
		t.Setenv(SharedVariable, value)
		grace, err := sharedGrace()
		if err != nil {
			grace = invalid
			if !strings.Contains(err.Error(), SharedVariable) {
				t.Errorf("the error does not name the variable: %v", err)
			}
		}
		got[value] = grace
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
