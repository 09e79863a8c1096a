// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/graph/rbac"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// The case has a call of each sort, and reactors fail one of them.
func TestWhichPermissionsDoCasesNeed(t *testing.T) {
	recorder := &rbac.Recorder{}
	refuse := InduceFailure("create", "ConfigMap")
	suite := ReconcilerTestSuite{{
		Name: "all calls", Request: reconcilers.Request{}, WithReactors: []ReactionFunc{refuse},
		GivenObjects:  []client.Object{&corev1.Secret{ObjectMeta: objectMeta("one")}},
		ExpectCreates: []client.Object{&corev1.ConfigMap{ObjectMeta: objectMeta("one")}},
		ExpectApplies: []ApplyRef{{
			Kind: "Secret", Namespace: "my-namespace", Name: "one",
			ApplyConfiguration: corev1apply.Secret("one", "my-namespace"),
		}},
		ExpectDeleteCollections: []DeleteCollectionRef{{Kind: "Pod", Namespace: "my-namespace"}},
		AdditionalConfigs:       map[string]ExpectConfig{"other": {}},
	}}
	suite.Run(t, fixture.NewScheme(), func(
		t *testing.T, _ *ReconcilerTestCase, c reconcilers.Config,
	) reconcile.Reconciler {
		return reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			pod := &corev1.Pod{ObjectMeta: objectMeta("one")}
			other := reconcilers.RetrieveAdditionalConfigs(ctx)["other"]
			if err := c.Create(ctx, &corev1.ConfigMap{ObjectMeta: objectMeta("one")}); err == nil {
				t.Error("the create did not fail")
			}
			return reconcile.Result{}, errors.Join(
				c.Get(ctx, client.ObjectKey{Namespace: "my-namespace", Name: "one"}, &corev1.Secret{}),
				c.List(ctx, &corev1.ServiceList{}),
				c.Apply(ctx, corev1apply.Secret("one", "my-namespace"), client.FieldOwner("me")),
				c.APIReader.List(ctx, &corev1.NodeList{}),
				c.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("my-namespace")),
				c.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{}),
				other.List(ctx, &corev1.EndpointsList{}),
			)
		})
	}, RecordPermissions(recorder))
	want := `
// +kubebuilder:rbac:groups="",resources=configmaps;pods/eviction,verbs=create
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list
// +kubebuilder:rbac:groups="",resources=pods,verbs=deletecollection
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;patch;watch
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch
`
	if diff := cmp.Diff(want, "\n"+recorder.Used().Markers()); diff != "" {
		t.Errorf("markers (-want +got):\n%s", diff)
	}
}

func coreRule(resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: verbs}
}

// loggingT collects what a helper reports.
type loggingT struct {
	testing.TB
	lines []string
}

func (*loggingT) Helper() {}

func (l *loggingT) Errorf(format string, args ...any) { l.add("error", format, args) }

func (l *loggingT) Logf(format string, args ...any) { l.add("log", format, args) }

func (l *loggingT) add(level, format string, args []any) {
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		l.lines = append(l.lines, level+": "+strings.TrimSpace(line))
	}
}

func TestAssertPermissions(t *testing.T) {
	role := []rbacv1.PolicyRule{coreRule("pods", "get", "list"), coreRule("nodes", "get")}
	one, another := &rbac.Recorder{}, &rbac.Recorder{}
	one.Add(rbac.Permission{Resource: "pods", Verb: "get"})
	another.Add(rbac.Permission{Resource: "secrets", Verb: "get"})
	declared := rbac.Of(
		rbac.Permission{Resource: "pods", Verb: "get"}, rbac.Permission{Resource: "pods", Verb: "list"},
		rbac.Permission{Resource: "secrets", Verb: "list"},
	)
	for name, tc := range map[string]struct {
		declared  rbac.Permissions
		recorders []*rbac.Recorder
		want      []string
	}{
		"granted": {
			declared: nil, recorders: []*rbac.Recorder{one}, want: []string{
				"log: permissions:", "log: granted but not used: get nodes", "log: granted but not used: list pods",
				"log: granted but neither declared nor used: get nodes",
				"log: granted but neither declared nor used: list pods",
			},
		},
		"missing, declared and used": {
			declared: declared, recorders: []*rbac.Recorder{one, another}, want: []string{
				"error: the role does not grant: get secrets", "error: the role does not grant: list secrets",
				"error: the rules must also contain:",
				`error: // +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list`,
				"log: permissions:", "log: used but not declared: get secrets", "log: granted but not used: get nodes",
				"log: granted but not used: list pods", "log: granted but neither declared nor used: get nodes",
			},
		},
	} {
		got := &loggingT{}
		AssertPermissions(got, role, tc.declared, tc.recorders...)
		if diff := cmp.Diff(tc.want, got.lines); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
