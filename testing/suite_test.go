// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// names are the names of the cases that have run, and of their tests.
type names struct {
	mu  sync.Mutex
	all []string
}

func (n *names) add(t *testing.T, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, name+" as "+t.Name())
}

func (n *names) reconciler(t *testing.T, tc *rtesting.ReconcilerTestCase, _ reconcilers.Config) reconcile.Reconciler {
	n.add(t, tc.Name)
	return withoutEffect(nil, nil, reconcilers.Config{})
}

func (n *names) subReconciler(
	t *testing.T, tc *subCase, _ reconcilers.Config,
) reconcilers.SubReconciler[*fixture.Resource] {
	n.add(t, tc.Name)
	return reconcilers.Sequence[*fixture.Resource]{}
}

func (n *names) webhook(t *testing.T, tc *rtesting.AdmissionWebhookTestCase, _ reconcilers.Config) *admission.Webhook {
	n.add(t, tc.Name)
	return &admission.Webhook{
		Handler: handler(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") }),
	}
}

// Lists run in order, maps under their keys; cases to skip are left out.
func TestSuites(t *testing.T) {
	request, allowed := &admission.Request{}, admission.Allowed("")
	tests := map[string]func(t *testing.T, n *names, opts ...rtesting.RunOption){
		"ReconcilerTests": func(t *testing.T, n *names, opts ...rtesting.RunOption) {
			rtesting.ReconcilerTests{
				"b": {Name: "ignored"}, "a": {}, "no": {Skip: true}, "c": {},
			}.Run(t, scheme, n.reconciler, opts...)
		},
		"ReconcilerTestSuite": func(t *testing.T, n *names, opts ...rtesting.RunOption) {
			rtesting.ReconcilerTestSuite{
				{Name: "a"}, {Name: "b"}, {Name: "no", Skip: true}, {Name: "c"},
			}.Run(t, scheme, n.reconciler, opts...)
		},
		"SubReconcilerTests": func(t *testing.T, n *names, opts ...rtesting.RunOption) {
			rtesting.SubReconcilerTests[*fixture.Resource]{
				"b": {
					Resource: newResource("r"),
				}, "a": {Resource: newResource("r")}, "no": {Skip: true}, "c": {Resource: newResource("r")},
			}.Run(t, scheme, n.subReconciler, opts...)
		},
		"SubReconcilerTestSuite": func(t *testing.T, n *names, opts ...rtesting.RunOption) {
			rtesting.SubReconcilerTestSuite[*fixture.Resource]{
				{
					Name: "a", Resource: newResource("r"),
				}, {Name: "b", Resource: newResource("r")}, {Name: "no", Skip: true}, {Name: "c", Resource: newResource("r")},
			}.Run(t, scheme, n.subReconciler, opts...)
		},
		"AdmissionWebhookTests": func(t *testing.T, n *names, opts ...rtesting.RunOption) {
			rtesting.AdmissionWebhookTests{
				"b": {Request: request, ExpectedResponse: allowed}, "a": {Request: request, ExpectedResponse: allowed},
				"no": {Skip: true}, "c": {Request: request, ExpectedResponse: allowed},
			}.Run(t, scheme, n.webhook, opts...)
		},
		"AdmissionWebhookTestSuite": func(t *testing.T, n *names, opts ...rtesting.RunOption) {
			rtesting.AdmissionWebhookTestSuite{
				{Name: "a", Request: request, ExpectedResponse: allowed},
				{Name: "b", Request: request, ExpectedResponse: allowed},
				{Name: "no", Skip: true},
				{Name: "c", Request: request, ExpectedResponse: allowed},
			}.Run(t, scheme, n.webhook, opts...)
		},
	}
	for name, run := range tests {
		list := name[len(name)-1] == 'e'
		want := func(in string) []string {
			return []string{"a as " + in + "/a", "b as " + in + "/b", "c as " + in + "/c"}
		}
		t.Run(name, func(t *testing.T) {
			n := &names{}
			run(t, n)
			if !list {
				slices.Sort(n.all)
			}
			if diff := cmp.Diff(want(t.Name()), n.all); diff != "" {
				t.Errorf("cases that have run (-want +got):\n%s", diff)
			}
		})
		t.Run(name+"InParallel", func(t *testing.T) {
			n := &names{}
			t.Cleanup(func() {
				slices.Sort(n.all)
				if diff := cmp.Diff(want(t.Name()), n.all); diff != "" {
					t.Errorf("cases that have run (-want +got):\n%s", diff)
				}
			})
			run(t, n, rtesting.Parallel())
			if len(n.all) > 0 {
				t.Errorf("%q have run before Run has returned, want them to wait for the others", n.all)
			}
		})
	}
}

// The former name of Run still works.
//
//nolint:govet // it should be replaced everywhere else
func TestDeprecatedTest(t *testing.T) {
	n := &names{}
	list := rtesting.ReconcilerTestSuite{{Name: "list", Key: reconcilers.Request{}.NamespacedName}}
	list.Test(t, scheme, n.reconciler)
	rtesting.ReconcilerTests{"map": {}}.Test(t, scheme, n.reconciler)
	list[0].Test(t, scheme, n.reconciler)
	subList := rtesting.SubReconcilerTestSuite[*fixture.Resource]{
		{Name: "sub list", Parent: newResource("r"), ExpectParent: newResource("r")},
	}
	subList.Test(t, scheme, n.subReconciler)
	rtesting.SubReconcilerTests[*fixture.Resource]{"sub map": {Parent: newResource("r")}}.Test(t, scheme, n.subReconciler)
	subList[0].Test(t, scheme, n.subReconciler)
	want := []string{
		"list as TestDeprecatedTest/list", "map as TestDeprecatedTest/map", "list as TestDeprecatedTest",
		"sub list as TestDeprecatedTest/sub_list", "sub map as TestDeprecatedTest/sub_map", "sub list as TestDeprecatedTest",
	}
	if diff := cmp.Diff(want, n.all); diff != "" {
		t.Errorf("cases that have run (-want +got):\n%s", diff)
	}
}
