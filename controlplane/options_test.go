// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestZeroOptionsAreValid(t *testing.T) {
	if err := (Options{}).validate(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(DefaultControllers(), Options{}.controllers()); diff != "" {
		t.Errorf("controllers (-want +got):\n%s", diff)
	}
	for _, name := range DefaultControllers() {
		if !slices.Contains(KnownControllers(), name) {
			t.Errorf("%s runs by default, but is unknown", name)
		}
	}
}

func TestValidateListsEveryProblem(t *testing.T) {
	err := Options{Port: -1, Verbosity: -2, Controllers: []string{"zzz", NoControllers, "aaa"}}.validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"port -1", "verbosity -2", `"none" must be the only name`, "controllers: aaa, zzz: unknown",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not mention %q:\n%v", want, err)
		}
	}
}
