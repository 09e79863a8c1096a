// SPDX-License-Identifier: Apache-2.0

package access

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"trueup.dev/internal/memapi"
)

func TestPermits(t *testing.T) {
	apps := []string{"apps"}
	for name, c := range map[string]struct {
		rule rbacv1.PolicyRule
		p    memapi.Access
		want bool
	}{
		"exact": {
			rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: apps, Resources: []string{"deployments"}},
			memapi.Access{Verb: "get", Group: "apps", Resource: "deployments"},
			true,
		},
		"another group": {
			rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"deployments"}},
			memapi.Access{Verb: "get", Group: "apps", Resource: "deployments"},
			false,
		},
		"a resource is not its subresource": {
			rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: apps, Resources: []string{"deployments"}},
			memapi.Access{Verb: "update", Group: "apps", Resource: "deployments", Subresource: "status"},
			false,
		},
		"all resources and their subresources": {
			rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
			memapi.Access{Verb: "update", Group: "apps", Resource: "deployments", Subresource: "status"},
			true,
		},
		"a subresource of all resources": {
			rbacv1.PolicyRule{Verbs: []string{"update"}, APIGroups: apps, Resources: []string{"*/scale"}},
			memapi.Access{Verb: "update", Group: "apps", Resource: "deployments", Subresource: "scale"},
			true,
		},
		"another subresource of all resources": {
			rbacv1.PolicyRule{Verbs: []string{"update"}, APIGroups: apps, Resources: []string{"*/scale"}},
			memapi.Access{Verb: "update", Group: "apps", Resource: "deployments", Subresource: "status"},
			false,
		},
		"a name": {
			rbacv1.PolicyRule{
				Verbs: []string{"get"}, APIGroups: apps, Resources: []string{"deployments"}, ResourceNames: []string{"a"},
			},
			memapi.Access{Verb: "get", Group: "apps", Resource: "deployments", Name: "a"},
			true,
		},
		"no name, as for a create": {
			rbacv1.PolicyRule{
				Verbs: []string{"create"}, APIGroups: apps, Resources: []string{"deployments"}, ResourceNames: []string{"a"},
			},
			memapi.Access{Verb: "create", Group: "apps", Resource: "deployments"},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := permits(c.rule, c.p); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
