// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResolve(t *testing.T) {
	without := func(name string) []string {
		return slices.DeleteFunc(Default(), func(other string) bool { return other == name })
	}
	with := func(name string) []string {
		names := append(Default(), name)
		slices.Sort(names)
		return names
	}
	cases := []struct {
		reason string
		list   []string
		want   []string
	}{
		{"nil selects the default", nil, Default()},
		{"none disables all", []string{"none"}, nil},
		{"an empty list disables all", []string{}, nil},
		{
			"plain names run exactly these",
			[]string{"job-controller", "cronjob-controller"},
			[]string{"cronjob-controller", "job-controller"},
		},
		{"old names are accepted", []string{"garbagecollector"}, []string{"garbage-collector-controller"}},
		{"a star is the default", []string{"*"}, Default()},
		{"a minus removes", []string{"*", "-cronjob-controller"}, without("cronjob-controller")},
		{"a minus wins wherever it is", []string{"-cronjob", "*"}, without("cronjob-controller")},
		{"a minus alone changes the default", []string{"-cronjob-controller"}, without("cronjob-controller")},
		{"a plus alone changes the default", []string{"+bootstrap-signer-controller"}, with("bootstrap-signer-controller")},
		{
			"a plus beside a plain name is that name",
			[]string{"job-controller", "+cronjob-controller"},
			[]string{"cronjob-controller", "job-controller"},
		},
		{"what is not linked can be removed", []string{"*", "-persistentvolume-attach-detach-controller"}, Default()},
		{"spaces are ignored", []string{" job-controller", "-cronjob-controller "}, []string{"job-controller"}},
	}
	for _, c := range cases {
		got, err := Resolve(c.list)
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, diff)
		}
	}
}

func TestResolveListsEveryProblem(t *testing.T) {
	_, err := Resolve([]string{"zzz", None, "-aaa", "selinux-warning-controller", ""})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`"none" must be the only name`,
		"controllers: \"\", aaa, zzz: unknown; known controllers: bootstrap-signer-controller, ",
		"controllers: selinux-warning-controller is not part of this control plane: it inspects volumes of machines",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not mention %q:\n%v", want, err)
		}
	}
}
