// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOptionsValidate(t *testing.T) {
	cases := map[string]struct {
		o    Options
		want string
	}{
		"the zero value is valid": {Options{}, ""},
		"no controllers":          {Options{Controllers: []string{"none"}}, ""},
		"every mistake is reported": {
			Options{
				Binary: "b", Kubeconfig: "k", Controllers: []string{"a", "", "none", "b,c"},
				APIServerArgs: []string{"profiling", "=x"},
				Port:          70000, Verbosity: -1, StartTimeout: -time.Second,
			},
			`sandbox: invalid options: Binary and Kubeconfig: at most one may be set
Controllers[1]: "" is not the name of a controller
Controllers[2]: "none" must be the only name
Controllers[3]: "b,c" is not the name of a controller
APIServerArgs[1]: must be "name=value", got "=x"
Port: must be between 0 and 65535, got 70000
Verbosity: must not be negative, got -1
StartTimeout: must not be negative, got -1s`,
		},
		"an empty list is not the same as no list": {
			Options{Controllers: []string{}},
			`sandbox: invalid options: Controllers: empty but not nil; use []string{"none"} to run no controllers`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := c.o.validate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if c.want == "" {
				return
			}
			if _, err := Start(t.Context(), c.o); err == nil || err.Error() != c.want {
				t.Errorf("Start returned %v, want %s", err, c.want)
			}
		})
	}
}

func TestOptionsDefaults(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		variable string
		o, want  Options
	}{
		"no options": {"", Options{}, Options{StartTimeout: 5 * time.Minute}},
		"the variable points at a cluster": {
			"/from/env",
			Options{},
			Options{Kubeconfig: "/from/env", StartTimeout: time.Minute},
		},
		"an explicit cluster takes precedence over the variable": {
			"/from/env",
			Options{Kubeconfig: "/from/field"},
			Options{Kubeconfig: "/from/field", StartTimeout: time.Minute},
		},
		"an explicit binary takes precedence over the variable": {
			"/from/env",
			Options{Binary: "/bin/x"},
			Options{Binary: "/bin/x", StartTimeout: 5 * time.Minute},
		},
		"paths become absolute": {
			"",
			Options{Dir: "d", Kubeconfig: "k", StartTimeout: time.Second},
			Options{Dir: filepath.Join(here, "d"), Kubeconfig: filepath.Join(here, "k"), StartTimeout: time.Second},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(KubeconfigVariable, c.variable)
			got := c.o
			if err := got.setDefaults(); err != nil {
				t.Fatal(err)
			}
			if got.Progress != os.Stderr || got.LogOutput != os.Stderr {
				t.Errorf("got Progress %v and LogOutput %v, want standard error", got.Progress, got.LogOutput)
			}
			got.Progress, got.LogOutput = nil, nil
			c.want.Backend = ControlPlane
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOptions_Runs(t *testing.T) {
	for _, c := range []struct {
		controllers []string
		want        bool
	}{
		{nil, true},
		{[]string{"none"}, false},
		{[]string{"job-controller"}, false},
		{[]string{"job-controller", serviceAccountController}, true},
		{[]string{"*"}, true},
		{[]string{"*", "-" + serviceAccountController}, false},
		{[]string{"-job-controller"}, true},
		{[]string{"-" + serviceAccountController}, false},
		{[]string{"+" + serviceAccountController, "job-controller"}, true},
	} {
		if got := (&Options{Controllers: c.controllers}).runs(serviceAccountController); got != c.want {
			t.Errorf("%q: got %t, want %t", c.controllers, got, c.want)
		}
	}
}
