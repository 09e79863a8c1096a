// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph/rbac"
)

func clusterRole(rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "manager-role"}, Rules: rules}
}

// rule returns a rule for resources of the core group.
func rule(resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: verbs}
}

func checkRoles(t *testing.T, roles ...client.Object) *Report {
	t.Helper()
	s := controllerScenario(false)
	s.Roles = roles
	return mustCheck(t, s, Options{Seed: 1})
}

// TestRolesSuffice runs a reconciler with what it needs, and lists what it does not need.
func TestRolesSuffice(t *testing.T) {
	for name, roles := range map[string][]client.Object{
		"cluster role": {clusterRole(
			rule("secrets", "get", "list", "watch"), rule("configmaps", "create", "update", "list", "watch", "delete"),
			rule("events", "create"), rule("secrets/finalizers", "update"),
		)},
		"roles of a namespace": {
			&rbacv1.Role{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "manager-role"},
				Rules:      []rbacv1.PolicyRule{rule("*", "list", "watch")},
			},
			&rbacv1.Role{Rules: []rbacv1.PolicyRule{rule("configmaps", "create", "update")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			report := checkRoles(t, roles...)
			if report.Failure != nil {
				t.Fatal(report.Failure)
			}
			var want []string
			if name == "cluster role" {
				want = []string{"ClusterRole manager-role: no run has used configmaps (delete), secrets (get)"}
			}
			if diff := cmp.Diff(want, report.Certificate.Advice); diff != "" {
				t.Errorf("advice (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatWouldItNeedPermissionFor records what a program needs, with and without roles.
func TestWhatWouldItNeedPermissionFor(t *testing.T) {
	everything := clusterRole(rule("*", "*"))
	for name, roles := range map[string][]client.Object{"no roles": nil, "roles": {everything}} {
		recorder := &rbac.Recorder{}
		s := controllerScenario(false)
		s.Roles, s.Permissions = roles, recorder
		converges(t, s, Options{Seed: 1, SingleRequests: 100})
		const want = `
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=create;list;update;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch
`
		if diff := cmp.Diff(want, "\n"+recorder.Used().Markers()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestMissingRules lists all missing rules at once.
func TestMissingRules(t *testing.T) {
	report := checkRoles(t, clusterRole(rule("secrets", "get", "list"), rule("configmaps", "update")))
	if report.Failure == nil {
		t.Fatal("found nothing")
	}
	if v := report.Failure.Violation; v.Oracle != OracleErrors || v.Cause != CauseForbidden {
		t.Errorf("got %v", v)
	}
	want := []string{
		`// +kubebuilder:rbac:groups="",resources=configmaps,verbs=create;list;watch`,
		`// +kubebuilder:rbac:groups="",resources=secrets,verbs=watch`,
	}
	if diff := cmp.Diff(want, report.Failure.Violation.Details); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
}

// TestMissingRuleAfterFault finds a rule that only the reaction to a fault requires.
func TestMissingRuleAfterFault(t *testing.T) {
	s := controllerScenario(false)
	changed := newSecret("a")
	changed.Data = map[string][]byte{"value": []byte("2")}
	s.Steps = Steps(Apply(newSecret("a")), Apply(changed), Settle()) // usually it sees only the second value
	s.Roles = []client.Object{clusterRole(
		rule("secrets", "list", "watch"), rule("configmaps", "create", "list", "watch"),
	)}
	report := mustCheck(t, s, Options{Seed: 1})
	if report.Failure == nil || len(report.Failure.Faults) == 0 {
		t.Fatalf("got %v, want a failure with a fault", report.Failure)
	}
	want := `a request is not allowed by the roles: configmaps "a" is forbidden: User ` +
		`"system:serviceaccount:system:controller-manager" cannot update resource "configmaps" in API group "" in the ` +
		`namespace "default"`
	if got := report.Failure.Violation.Message; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRoles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\nrules: []\n---\n" +
			"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n---\n" +
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: b, namespace: c}\n",
		"bad.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: c}\nrules: 3\n---\n" +
			"apiVersion: rbac.authorization.k8s.io/v1beta1\nkind: Role\nmetadata: {name: d}\n",
		"none.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, role := range RolesOrDie(filepath.Join(dir, "role.yaml")) {
		names = append(names, role.GetName())
	}
	if !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("got %v", names)
	}
	_, err := Roles(filepath.Join(dir, "bad.yaml"))
	for _, want := range []string{"document 1 (line 1): json: cannot unmarshal", "v1beta1 is not supported"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if _, err := Roles(filepath.Join(dir, "none.yaml")); err == nil {
		t.Error("want an error if there is no role")
	}
}
