// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"trueup.dev/graph/rbac"
	"trueup.dev/observe/recorder"
)

// pods returns a rule, for the pods with some names or for all.
func pods(verbs string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: strings.Fields(verbs), ResourceNames: names,
	}
}

func TestWhichPermissionIsMissing(t *testing.T) {
	get := rbac.Permission{Resource: "pods", Verb: "get"}
	update := rbac.Permission{Group: "apps", Resource: "deployments/status", Verb: "update"}
	selfReview := pods("create")
	selfReview.Resources = []string{"selfsubjectrulesreviews"}
	everything := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	for name, tc := range map[string]struct {
		needed rbac.Permissions
		answer answer
		want   []string
	}{
		"granted": {
			rbac.Of(get),
			answer{namespaces: []namespaceGrants{{name: "a", rules: []rbacv1.PolicyRule{pods("get")}}}},
			[]string{"Granted pods get"},
		},
		"granted, with the rest of a rule": {
			rbac.Of(get),
			answer{namespaces: []namespaceGrants{{name: "a", rules: []rbacv1.PolicyRule{pods("list get delete")}}}},
			[]string{"Unused pods delete,list", "Granted pods get"},
		},
		"granted by a wildcard": {
			rbac.Of(get, update),
			answer{namespaces: []namespaceGrants{{name: "a", rules: []rbacv1.PolicyRule{everything}}}},
			[]string{"Granted pods get", "Granted deployments/status update"},
		},
		"missing in one namespace": {
			rbac.Of(get),
			answer{namespaces: []namespaceGrants{
				{name: "a", rules: []rbacv1.PolicyRule{pods("get")}}, {name: "b", rules: []rbacv1.PolicyRule{selfReview}},
			}},
			[]string{"Missing pods get in b"},
		},
		"granted for some names": {
			rbac.Of(get),
			answer{namespaces: []namespaceGrants{{name: "a", rules: []rbacv1.PolicyRule{pods("get", "one")}}}},
			[]string{"Granted pods get for names"},
		},
		"rules are incomplete, and single permissions were reviewed": {
			rbac.Of(get, update),
			answer{namespaces: []namespaceGrants{{
				name: "a", incomplete: true, allowed: map[rbac.Permission]bool{get: true, update: false},
			}}},
			[]string{"Missing deployments/status update in a", "Granted pods get"},
		},
		"rules are incomplete, and not all permissions were reviewed": {
			rbac.Of(get, update),
			answer{namespaces: []namespaceGrants{{
				name: "a", incomplete: true, allowed: map[rbac.Permission]bool{get: false},
			}}},
			[]string{"Missing pods get in a", "Unknown deployments/status update"},
		},
		"the API server does not answer": {
			rbac.Of(get), answer{err: errors.New("no connection")}, []string{"Unknown pods get"},
		},
	} {
		got := []string{}
		for _, row := range rows(compare(tc.needed, tc.answer)) {
			text := fmt.Sprintf("%s %s %s", row.State, row.Resource, strings.Join(row.Verbs, ","))
			if len(row.MissingIn) > 0 {
				text += " in " + strings.Join(row.MissingIn, ",")
			}
			if row.NamesOnly {
				text += " for names"
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What is used and missing fails now, so it is before what is only declared.
func TestWhichPermissionIsFirst(t *testing.T) {
	state := func(s PermissionState, used bool) Permission { return Permission{State: s, Used: used} }
	got := []string{}
	for _, row := range rows(map[rbac.Permission]Permission{
		{Resource: "a", Verb: "get"}:                state(PermissionGranted, true),
		{Resource: "b", Verb: "get"}:                state(PermissionUnused, false),
		{Resource: "c", Verb: "get"}:                state(PermissionMissing, false),
		{Resource: "d", Verb: "get"}:                state(PermissionMissing, true),
		{Resource: "d", Verb: "list"}:               state(PermissionMissing, false),
		{Resource: "e", Verb: "get"}:                state(PermissionUnknown, true),
		{Group: "apps", Resource: "d", Verb: "get"}: state(PermissionMissing, true),
	}) {
		got = append(got, row.Group+" "+row.Resource+" "+strings.Join(row.Verbs, ","))
	}
	want := []string{" d get", "apps d get", " c get", " d list", " e get", " b get", " a get"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInWhichNamespacesIsAsked(t *testing.T) {
	r := recorder.New(recorder.Options{})
	if diff := cmp.Diff([]string{"default"}, namespacesOf(r)); diff != "" {
		t.Errorf("without objects (-want +got):\n%s", diff)
	}
}
