// SPDX-License-Identifier: Apache-2.0

package memapi_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/sandbox"
)

// TestForbiddenIsTheServers compares the errors about permissions and quotas with the errors of a real API server.
func TestForbiddenIsTheServers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	env := sandbox.ForTest(t, sandbox.TestOptions{
		Options: sandbox.Options{Controllers: []string{"none"}, DisablePods: true},
	})
	admin, err := client.New(env.RESTConfig(), client.Options{Scheme: fixture.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	const user = "system:serviceaccount:system:controller-manager"
	config := rest.CopyConfig(env.RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	nobody, err := client.New(config, client.Options{Scheme: fixture.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Namespace: env.Namespace, Name: "a"}
	access := memapi.Access{Group: "apps", Resource: "deployments", Namespace: env.Namespace}
	with := func(verb, subresource, name string) memapi.Access {
		a := access
		a.Verb, a.Subresource, a.Name = verb, subresource, name
		return a
	}
	ctx := t.Context()
	for name, c := range map[string]struct {
		access memapi.Access
		got    error
	}{
		"get": {
			with("get", "", "a"),
			nobody.Get(ctx, client.ObjectKey{Namespace: meta.Namespace, Name: "a"}, &appsv1.Deployment{}),
		},
		"create": {with("create", "", ""), nobody.Create(ctx, &appsv1.Deployment{ObjectMeta: meta})},
		"list":   {with("list", "", ""), nobody.List(ctx, &appsv1.DeploymentList{}, client.InNamespace(meta.Namespace))},
		"status": {with("update", "status", "a"), nobody.Status().Update(ctx, &appsv1.Deployment{ObjectMeta: meta})},
		"cluster": {
			memapi.Access{Verb: "list", Resource: "namespaces"}, nobody.List(ctx, &corev1.NamespaceList{}),
		},
	} {
		if diff := cmp.Diff(statusOf(c.got), statusOf(memapi.Forbidden(user, c.access))); diff != "" {
			t.Errorf("%s (-real +memory):\n%s", name, diff)
		}
	}

	limit := corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: meta, Spec: corev1.ResourceQuotaSpec{Hard: limit}}
	if err := admin.Create(ctx, quota); err != nil {
		t.Fatal(err)
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: limit, Used: limit} // as the controller of quotas does
	if err := admin.Status().Update(ctx, quota); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"a": "b"}
	for _, names := range []metav1.ObjectMeta{
		{Namespace: env.Namespace, Name: "one"}, {Namespace: env.Namespace, GenerateName: "one-"},
	} {
		err := admin.Create(ctx, &appsv1.Deployment{ObjectMeta: names, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}},
			},
		}})
		want := memapi.ExceededQuota("a", schema.GroupResource{Group: "apps", Resource: "deployments"}, "one", 0)
		if got := err; names.Name == "" { // the name is generated before
			if !apierrors.IsForbidden(got) {
				t.Errorf("got %v", got)
			}
		} else if diff := cmp.Diff(statusOf(got), statusOf(want)); diff != "" {
			t.Errorf("quota (-real +memory):\n%s", diff)
		}
	}
}

// statusOf returns the status of an error.
func statusOf(err error) any {
	if status, ok := err.(apierrors.APIStatus); ok {
		s := status.Status()
		s.TypeMeta, s.ListMeta = metav1.TypeMeta{}, metav1.ListMeta{}
		return s
	}
	return err
}
