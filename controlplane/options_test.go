// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func TestDefaultControllersAreKnown(t *testing.T) {
	known := kcm.KnownControllers()
	for _, name := range DefaultControllers() {
		if !slices.Contains(known, name) {
			t.Errorf("%s is unknown to kube-controller-manager", name)
		}
	}
	if err := (Options{}).validate(); err != nil {
		t.Errorf("zero options: %v", err)
	}
}

func TestControllersResolve(t *testing.T) {
	cases := []struct {
		reason      string
		controllers []string
		want        []string
	}{
		{"nil selects the default", nil, DefaultControllers()},
		{"none disables all controllers", []string{NoControllers}, nil},
		{"an empty list disables all controllers", []string{}, []string{}},
		{
			"old names are accepted",
			[]string{"garbagecollector", "job-controller"},
			[]string{"garbage-collector-controller", "job-controller"},
		},
	}
	for _, c := range cases {
		if diff := cmp.Diff(c.want, Options{Controllers: c.controllers}.controllers()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, diff)
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
