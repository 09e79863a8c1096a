// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"strings"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

func TestAPIServerArgs(t *testing.T) {
	tests := map[string]struct {
		options Options
		want    []string // none if the options are valid
	}{
		"none": {Options{}, nil},
		"values": {
			Options{APIServerArgs: []string{"event-ttl=10m", "--profiling", "runtime-config=api/all=true"}}, nil,
		},
		"feature gate":      {Options{APIServerArgs: []string{"feature-gates=WatchList=false"}}, nil},
		"admission plugins": {Options{APIServerArgs: []string{"enable-admission-plugins=AlwaysPullImages"}}, nil},
		"emulated version":  {Options{EmulatedVersion: "1.36"}, nil},
		"unknown flag":      {Options{APIServerArgs: []string{"color=red"}}, []string{`has no flag "color"`}},
		"no value":          {Options{APIServerArgs: []string{"event-ttl"}}, []string{"event-ttl=VALUE"}},
		"wrong value": {
			Options{APIServerArgs: []string{"event-ttl=soon"}}, []string{`event-ttl: time: invalid duration "soon"`},
		},
		"own flag": {Options{APIServerArgs: []string{"secure-port=1"}}, []string{"use the option Port (--port)"}},
		"own range": {
			Options{APIServerArgs: []string{"service-cluster-ip-range=10.0.0.0/8"}}, []string{serviceRange},
		},
		"unknown gate": {
			Options{APIServerArgs: []string{"feature-gates=NoSuch=true"}}, []string{"unrecognized feature gate: NoSuch"},
		},
		"unknown version": {Options{EmulatedVersion: "2.0"}, []string{"emulation version 2.0 is not between"}},
		"not a version":   {Options{EmulatedVersion: "latest"}, []string{"emulated-version", `"latest"`}},
		"stdout":          {Options{AuditLog: "-"}, []string{"audit-log-path must be a file"}},
		"several": {
			Options{APIServerArgs: []string{"color=red", "etcd-servers=x", "event-ttl=soon"}},
			[]string{`"color"`, ownEtcd, "event-ttl: time"},
		},
	}
	before := utilfeature.DefaultFeatureGate.Enabled("WatchList")
	for name, test := range tests {
		err := test.options.validate()
		if (err == nil) != (test.want == nil) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
		for _, want := range test.want {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %q", name, err, want)
			}
		}
	}
	if after := utilfeature.DefaultFeatureGate.Enabled("WatchList"); after != before {
		t.Errorf("feature gate WatchList = %v after validation, was %v", after, before)
	}
}

// Each name must be a flag, so that none is accepted after a rename.
func TestOwnFlagsExist(t *testing.T) {
	known := map[string]bool{}
	sets := options.NewServerRunOptions().Flags()
	for _, set := range sets.FlagSets {
		for name := range ownFlags {
			known[name] = known[name] || set.Lookup(name) != nil
		}
	}
	for name, exists := range known {
		if !exists {
			t.Errorf("kube-apiserver has no flag %s", name)
		}
	}
}
