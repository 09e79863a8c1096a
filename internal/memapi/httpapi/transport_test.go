// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/memapi/httpapi"
	"trueup.dev/internal/memapi/kinds"
	"trueup.dev/sandbox"
)

// configOf returns the configuration of clients of a new server in memory that has a namespace.
func configOf(t *testing.T, namespace string) *rest.Config {
	t.Helper()
	registry, err := kinds.NewRegistry(scheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	c := memapi.New(memapi.Options{Registry: registry, Applier: apply.New(registry), Seed: 1}).Client("test")
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	return &rest.Config{
		Host: "http://memory", QPS: -1, UserAgent: "test", Transport: &httpapi.Transport{Client: c, Registry: registry},
	}
}

// clients are the usual clients of client-go, in a namespace.
type clients struct {
	*kubernetes.Clientset

	dynamic   dynamic.Interface
	metadata  metadata.Interface
	namespace string
}

func clientsOf(t *testing.T, config *rest.Config, namespace string) *clients {
	t.Helper()
	return &clients{
		Clientset: kubernetes.NewForConfigOrDie(config), dynamic: dynamic.NewForConfigOrDie(config),
		metadata: metadata.NewForConfigOrDie(config), namespace: namespace,
	}
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "a"}}, Data: data}
}

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// requests are sent in this order to a real API server and to one in memory.
var requests = []struct {
	name string
	send func(ctx context.Context, c *clients) (any, error)
}{
	{"create", func(ctx context.Context, c *clients) (any, error) {
		return c.CoreV1().ConfigMaps(c.namespace).Create(
			ctx, configMap("one", map[string]string{"a": "1"}), metav1.CreateOptions{},
		)
	}},
	{"create again", func(ctx context.Context, c *clients) (any, error) {
		return c.CoreV1().ConfigMaps(c.namespace).Create(ctx, configMap("one", nil), metav1.CreateOptions{})
	}},
	{"create an invalid one", func(ctx context.Context, c *clients) (any, error) {
		return c.CoreV1().ConfigMaps(c.namespace).Create(ctx, configMap("Not A Name", nil), metav1.CreateOptions{})
	}},
	{"dry run", func(ctx context.Context, c *clients) (any, error) {
		options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		return c.CoreV1().ConfigMaps(c.namespace).Create(ctx, configMap("dry", nil), options)
	}},
	{"create in a missing namespace", func(ctx context.Context, c *clients) (any, error) {
		return c.CoreV1().ConfigMaps("missing-namespace").Create(ctx, configMap("one", nil), metav1.CreateOptions{})
	}},
	{"get", func(ctx context.Context, c *clients) (any, error) {
		return c.CoreV1().ConfigMaps(c.namespace).Get(ctx, "one", metav1.GetOptions{})
	}},
	{"get missing", func(ctx context.Context, c *clients) (any, error) {
		return c.CoreV1().ConfigMaps(c.namespace).Get(ctx, "dry", metav1.GetOptions{})
	}},
	{"update without a version", func(ctx context.Context, c *clients) (any, error) {
		return c.CoreV1().ConfigMaps(c.namespace).Update(
			ctx, configMap("one", map[string]string{"a": "2"}), metav1.UpdateOptions{},
		)
	}},
	{"update with an old version", func(ctx context.Context, c *clients) (any, error) {
		obj := configMap("one", nil)
		obj.ResourceVersion = "1"
		return c.CoreV1().ConfigMaps(c.namespace).Update(ctx, obj, metav1.UpdateOptions{})
	}},
	{"merge patch", func(ctx context.Context, c *clients) (any, error) {
		return c.CoreV1().ConfigMaps(c.namespace).Patch(
			ctx, "one", types.MergePatchType, []byte(`{"data":{"b":"3"}}`), metav1.PatchOptions{},
		)
	}},
	{"JSON patch", func(ctx context.Context, c *clients) (any, error) {
		return c.CoreV1().ConfigMaps(c.namespace).Patch(
			ctx, "one", types.JSONPatchType, []byte(`[{"op":"remove","path":"/data/a"}]`), metav1.PatchOptions{},
		)
	}},
	{"patch that is not JSON", func(ctx context.Context, c *clients) (any, error) {
		return c.CoreV1().ConfigMaps(c.namespace).Patch(
			ctx, "one", types.JSONPatchType, []byte(`{`), metav1.PatchOptions{},
		)
	}},
	{"merge patch that is not JSON", func(ctx context.Context, c *clients) (any, error) {
		return c.CoreV1().ConfigMaps(c.namespace).Patch(
			ctx, "one", types.MergePatchType, []byte(`{`), metav1.PatchOptions{},
		)
	}},
	{"strategic merge patch that is not JSON", func(ctx context.Context, c *clients) (any, error) {
		return c.CoreV1().ConfigMaps(c.namespace).Patch(
			ctx, "one", types.StrategicMergePatchType, []byte(`{`), metav1.PatchOptions{},
		)
	}},
	{"JSON patch that is an object", func(ctx context.Context, c *clients) (any, error) {
		return c.CoreV1().ConfigMaps(c.namespace).Patch(
			ctx, "one", types.JSONPatchType, []byte(`{"op":"remove"}`), metav1.PatchOptions{},
		)
	}},
	{"apply", func(ctx context.Context, c *clients) (any, error) {
		config := applycorev1.ConfigMap("applied", c.namespace).WithData(map[string]string{"a": "1"})
		return c.CoreV1().ConfigMaps(c.namespace).Apply(ctx, config, metav1.ApplyOptions{FieldManager: "one"})
	}},
	{"apply with a conflict", func(ctx context.Context, c *clients) (any, error) {
		config := applycorev1.ConfigMap("applied", c.namespace).WithData(map[string]string{"a": "2"})
		return c.CoreV1().ConfigMaps(c.namespace).Apply(ctx, config, metav1.ApplyOptions{FieldManager: "two"})
	}},
	{"apply by force", func(ctx context.Context, c *clients) (any, error) {
		config := applycorev1.ConfigMap("applied", c.namespace).WithData(map[string]string{"a": "2"})
		options := metav1.ApplyOptions{FieldManager: "two", Force: true}
		return c.CoreV1().ConfigMaps(c.namespace).Apply(ctx, config, options)
	}},
	{"list by label", func(ctx context.Context, c *clients) (any, error) {
		return c.CoreV1().ConfigMaps(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=a"})
	}},
	{"list by field", func(ctx context.Context, c *clients) (any, error) {
		return c.CoreV1().ConfigMaps(c.namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=applied"})
	}},
	{"list with an invalid selector", func(ctx context.Context, c *clients) (any, error) {
		return c.CoreV1().ConfigMaps(c.namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.no=1"})
	}},
	{"dynamic create", func(ctx context.Context, c *clients) (any, error) {
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "two"},
		}}
		return c.dynamic.Resource(configMaps).Namespace(c.namespace).Create(ctx, obj, metav1.CreateOptions{})
	}},
	{"dynamic create of another kind", func(ctx context.Context, c *clients) (any, error) {
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "two"},
		}}
		_, err := c.dynamic.Resource(configMaps).Namespace(c.namespace).Create(ctx, obj, metav1.CreateOptions{})
		return nil, withoutMessage(err)
	}},
	{"dynamic list", func(ctx context.Context, c *clients) (any, error) {
		list, err := c.dynamic.Resource(configMaps).Namespace(c.namespace).List(ctx, metav1.ListOptions{
			FieldSelector: "metadata.name=two",
		})
		if err != nil {
			return nil, err
		}
		return list.Items[0].Object, nil
	}},
	{"metadata get", func(ctx context.Context, c *clients) (any, error) {
		return c.metadata.Resource(configMaps).Namespace(c.namespace).Get(ctx, "one", metav1.GetOptions{})
	}},
	{"metadata list", func(ctx context.Context, c *clients) (any, error) {
		return c.metadata.Resource(configMaps).Namespace(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=a"})
	}},
	{"create a deployment", func(ctx context.Context, c *clients) (any, error) {
		labels := map[string]string{"app": "a"}
		return c.AppsV1().Deployments(c.namespace).Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
				},
			},
		}, metav1.CreateOptions{})
	}},
	{"get its scale", func(ctx context.Context, c *clients) (any, error) {
		return c.AppsV1().Deployments(c.namespace).GetScale(ctx, "web", metav1.GetOptions{})
	}},
	{"update its scale", func(ctx context.Context, c *clients) (any, error) {
		scale := &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: c.namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: 3},
		}
		return c.AppsV1().Deployments(c.namespace).UpdateScale(ctx, "web", scale, metav1.UpdateOptions{})
	}},
	{"update its status", func(ctx context.Context, c *clients) (any, error) {
		obj, err := c.AppsV1().Deployments(c.namespace).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		obj.Status.Replicas = 2
		obj.Spec.Replicas = new(int32(7)) // which a write to the status ignores
		return c.AppsV1().Deployments(c.namespace).UpdateStatus(ctx, obj, metav1.UpdateOptions{})
	}},
	{"a subresource that does not exist", func(ctx context.Context, c *clients) (any, error) {
		err := c.CoreV1().RESTClient().Put().Namespace(c.namespace).Resource("configmaps").Name("one").
			SubResource("status").Body(configMap("one", nil)).Do(ctx).Error()
		return nil, err
	}},
	{"a resource that does not exist", func(ctx context.Context, c *clients) (any, error) {
		err := c.CoreV1().RESTClient().Get().Namespace(c.namespace).Resource("things").Do(ctx).Error()
		return nil, err
	}},
	{"delete with another UID", func(ctx context.Context, c *clients) (any, error) {
		uid := types.UID("another")
		err := c.CoreV1().ConfigMaps(c.namespace).Delete(ctx, "two", metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &uid},
		})
		return nil, withoutMessage(err)
	}},
	{"delete", func(ctx context.Context, c *clients) (any, error) {
		return nil, c.CoreV1().ConfigMaps(c.namespace).Delete(ctx, "two", metav1.DeleteOptions{})
	}},
	{"delete missing", func(ctx context.Context, c *clients) (any, error) {
		return nil, c.CoreV1().ConfigMaps(c.namespace).Delete(ctx, "two", metav1.DeleteOptions{})
	}},
	{"delete a collection", func(ctx context.Context, c *clients) (any, error) {
		return nil, c.CoreV1().ConfigMaps(c.namespace).DeleteCollection(
			ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=a"},
		)
	}},
	{"list what is left", func(ctx context.Context, c *clients) (any, error) {
		options := metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"}
		return c.CoreV1().ConfigMaps(c.namespace).List(ctx, options)
	}},
}

// withoutMessage returns an error with the same reason and code. Messages may contain UIDs.
func withoutMessage(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s", apierrors.ReasonForError(err))
}

// TestTransportAnswersAsAServer sends requests of client-go to a real API server and to one in memory, as JSON and as
// protobuf.
func TestTransportAnswersAsAServer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		t.Run(contentType, func(t *testing.T) {
			env := sandbox.ForTest(t, sandbox.TestOptions{
				Options: sandbox.Options{Controllers: []string{"none"}, DisablePods: true},
			})
			realConfig, memoryConfig := rest.CopyConfig(env.RESTConfig()), configOf(t, env.Namespace)
			realConfig.ContentType, memoryConfig.ContentType = contentType, contentType
			realConfig.UserAgent = memoryConfig.UserAgent
			inReal := clientsOf(t, realConfig, env.Namespace)
			inMemory := clientsOf(t, memoryConfig, env.Namespace)
			for _, request := range requests {
				want, got := result(request.send(t.Context(), inReal)), result(request.send(t.Context(), inMemory))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-real +memory):\n%s", request.name, diff)
				}
			}
		})
	}
}

// result formats what a client returns, without what differs between servers.
func result(content any, err error) string {
	if err != nil {
		code := 0
		if status, ok := err.(apierrors.APIStatus); ok {
			code = int(status.Status().Code)
		}
		return fmt.Sprintf("%d %s: %v", code, apierrors.ReasonForError(err), err)
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		return err.Error()
	}
	var decoded any
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		return err.Error()
	}
	withoutIdentity(decoded)
	formatted, err := json.MarshalIndent(decoded, "", "  ")
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(formatted))
}

// withoutIdentity removes the fields that differ between servers. The server in memory tracks managed fields only of
// applied objects.
func withoutIdentity(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
			delete(value, field)
		}
		for _, item := range value {
			withoutIdentity(item)
		}
	case []any:
		for _, item := range value {
			withoutIdentity(item)
		}
	}
}
