// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/sandbox"
	_ "trueup.dev/sandbox/memory"
)

const gadgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.memory.trueup.dev}
spec:
  group: memory.trueup.dev
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, default: 1}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// onMemory returns an environment of a test.
func onMemory(t *testing.T) (*sandbox.Env, client.Client) {
	t.Helper()
	env := sandbox.ForTest(t, sandbox.TestOptions{
		Options: sandbox.Options{Backend: sandbox.Memory},
		CRDs:    []any{fstest.MapFS{"gadget.yaml": {Data: []byte(gadgets)}}},
	})
	c, err := client.New(env.RESTConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return env, c
}

func newGadget(namespace, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "memory.trueup.dev/v1", "kind": "Gadget", "spec": map[string]any{},
	}}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

func eventually(t *testing.T, what string, condition wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 20*time.Second, true, condition); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// TestForTest_controller runs a controller that owns a Deployment.
func TestForTest_controller(t *testing.T) {
	env, c := onMemory(t)
	mgr, err := ctrl.NewManager(env.RESTConfig(), ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "gadget"}
	err = ctrl.NewControllerManagedBy(mgr).For(newGadget("", "")).Owns(&appsv1.Deployment{}).Complete(
		reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			gadget := newGadget(r.Namespace, r.Name)
			if err := mgr.GetClient().Get(ctx, r.NamespacedName, gadget); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
			web.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(gadget, gadget.GroupVersionKind())}
			web.Spec = appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
				},
			}
			if err := client.IgnoreAlreadyExists(mgr.GetClient().Create(ctx, web)); err != nil {
				return reconcile.Result{}, err
			}
			found := &appsv1.Deployment{}
			if err := mgr.GetClient().Get(ctx, r.NamespacedName, found); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			status := map[string]any{"ready": int64(found.Status.ReadyReplicas)}
			gadget.Object["status"] = status
			return reconcile.Result{}, mgr.GetClient().Status().Update(ctx, gadget)
		}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	defer func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}()

	gadget := newGadget(env.Namespace, "one")
	if err := c.Create(t.Context(), gadget); err != nil {
		t.Fatal(err)
	}
	if size, _, _ := unstructured.NestedInt64(gadget.Object, "spec", "size"); size != 1 {
		t.Errorf("size = %d, want the default 1", size)
	}
	eventually(t, "the gadget is ready", func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(gadget), gadget)
		ready, _, _ := unstructured.NestedInt64(gadget.Object, "status", "ready")
		return ready == 1, err
	})
	if err := c.Delete(t.Context(), gadget); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its deployment and its pods are collected", func(ctx context.Context) (bool, error) {
		var deployments appsv1.DeploymentList
		var pods corev1.PodList
		err := errors.Join(
			c.List(ctx, &deployments, client.InNamespace(env.Namespace)), c.List(ctx, &pods, client.InNamespace(env.Namespace)),
		)
		return len(deployments.Items)+len(pods.Items) == 0, err
	})
}

// TestForTest_refuses checks that what the API does not have is an error that names the API.
func TestForTest_refuses(t *testing.T) {
	env, c := onMemory(t)
	object := func(apiVersion, kind string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "refused"},
		}}
		return obj
	}
	for _, kind := range []string{
		"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy",
		"MutatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding",
	} {
		err := c.Create(t.Context(), object("admissionregistration.k8s.io/v1", kind))
		if !strings.Contains(errorText(err), "this is the API in memory") {
			t.Errorf("creating a %s: %v", kind, err)
		}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "pod"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if err := c.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	for _, subresource := range []string{"exec", "attach", "portforward", "proxy", "ephemeralcontainers", "resize"} {
		err := c.SubResource(subresource).Create(t.Context(), pod, &corev1.Pod{})
		if !strings.Contains(errorText(err), "does not have the subresource pods/"+subresource) {
			t.Errorf("%s of a pod: %v", subresource, err)
		}
	}
	config := env.RESTConfig()
	config.Impersonate.UserName = "alice"
	alice, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = alice.CoreV1().Pods(env.Namespace).Get(t.Context(), "pod", metav1.GetOptions{})
	if !strings.Contains(errorText(err), "has only one user") {
		t.Errorf("a request as another user: %v", err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestStart(t *testing.T) {
	s, err := sandbox.Start(t.Context(), sandbox.Options{Backend: sandbox.Memory})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.KubeconfigPath()); err != nil {
		t.Error(err)
	}
	if s.Err() != nil {
		t.Errorf("error while it runs: %v", s.Err())
	}
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
	<-s.Done()
	if err := s.Err(); !errors.Is(err, sandbox.ErrStopped) {
		t.Errorf("error after Stop: %v, want ErrStopped", err)
	}
	if _, err := os.Stat(s.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its directory still exists: %v", err)
	}
}

func TestStart_fromEnvironment(t *testing.T) {
	t.Setenv(sandbox.BackendVariable, "memory")
	t.Setenv(sandbox.KubeconfigVariable, "")
	t.Setenv(sandbox.BinaryVariable, "/does/not/exist")
	s, err := sandbox.Start(t.Context(), sandbox.Options{Controllers: []string{"none"}, DisablePods: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if path, err := sandbox.Build(t.Context(), sandbox.Options{}); path != "" || err != nil {
		t.Errorf("Build = %q, %v; want that nothing is built", path, err)
	}
	c, err := client.New(s.RESTConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "default"}, &corev1.ServiceAccount{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a service account without controllers: %v, want that it does not exist", err)
	}
}

func TestStart_invalid(t *testing.T) {
	t.Setenv(sandbox.KubeconfigVariable, "")
	for want, o := range map[string]sandbox.Options{
		`unknown backend "etcd"`: {Backend: "etcd"},
		"cannot be combined":     {Backend: sandbox.Memory, Binary: "/bin/true"},
		"has all controllers":    {Backend: sandbox.Memory, Controllers: []string{"deployment-controller"}},
	} {
		s, err := sandbox.Start(t.Context(), o)
		if err == nil {
			_ = s.Stop()
		}
		if !strings.Contains(errorText(err), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
