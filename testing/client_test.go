// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
)

func objectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "my-namespace", Name: name}
}

// newTestClient returns a client of an API that has the given objects.
func newTestClient(t testing.TB, given ...client.Object) *clientWrapper {
	t.Helper()
	config := &ExpectConfig{
		Scheme: fixture.NewScheme(), GivenObjects: given, StatusSubResourceTypes: []client.Object{&fixture.Resource{}},
	}
	w, ok := config.Config().Client.(*clientWrapper)
	if !ok {
		t.Fatalf("unexpected client %T", config.Config().Client)
	}
	return w
}

// recorded returns what a client has recorded, a line for each action, beginning with the list it is in.
func recorded(w *clientWrapper) []string {
	var lines []string
	add := func(list string, action Action) {
		line := fmt.Sprintf(
			"%s: %s %s %s", list, action.GetVerb(), action.GetResource().GroupVersion().WithKind(action.GetResource().Resource),
			action.GetNamespace(),
		)
		if named, ok := action.(namedAction); ok {
			line += "/" + named.GetName()
		}
		if action.GetSubresource() != "" {
			line += " " + action.GetSubresource()
		}
		switch a := action.(type) {
		case objectAction:
			obj := a.GetObject().(client.Object)
			line += fmt.Sprintf(" %T %s%s", obj, obj.GetGenerateName(), obj.GetName())
		case PatchAction:
			line += fmt.Sprintf(" %s %s", a.GetPatchType(), a.GetPatch())
		case ApplyAction:
			line += fmt.Sprintf(" %T", a.GetApplyConfiguration())
		case DeleteCollectionAction:
			line += fmt.Sprintf(" labels=%s fields=%s", a.GetListRestrictions().Labels, a.GetListRestrictions().Fields)
		}
		lines = append(lines, line)
	}
	addAll(add, "ApplyActions", w.ApplyActions)
	addAll(add, "CreateActions", w.CreateActions)
	addAll(add, "UpdateActions", w.UpdateActions)
	addAll(add, "PatchActions", w.PatchActions)
	addAll(add, "DeleteActions", w.DeleteActions)
	addAll(add, "DeleteCollectionActions", w.DeleteCollectionActions)
	addAll(add, "StatusUpdateActions", w.StatusUpdateActions)
	addAll(add, "StatusPatchActions", w.StatusPatchActions)
	addAll(add, "StatusApplyActions", w.StatusApplyActions)
	addAll(add, "SubResourceActions", w.SubResourceActions)
	return lines
}

func addAll[A Action](add func(string, Action), list string, actions []A) {
	for _, action := range actions {
		add(list, action)
	}
}

func TestClient_recordsWrites(t *testing.T) {
	configMap := func() *corev1.ConfigMap { return &corev1.ConfigMap{ObjectMeta: objectMeta("one")} }
	resource := func() *fixture.Resource { return &fixture.Resource{ObjectMeta: objectMeta("one")} }
	deployment := func() *appsv1.Deployment { return &appsv1.Deployment{ObjectMeta: objectMeta("one")} }
	duck := func() *fixture.Duck { return fixture.NewDuck("my-namespace", "one") }
	mergePatch := client.RawPatch(types.MergePatchType, []byte(`{"a":"b"}`))
	owner := client.FieldOwner("me")
	tests := map[string]struct {
		call func(ctx context.Context, c client.Client) error
		want []string
	}{
		"create": {
			call: func(ctx context.Context, c client.Client) error { return c.Create(ctx, configMap()) },
			want: []string{"CreateActions: create /v1, Kind=ConfigMap my-namespace *v1.ConfigMap one"},
		},
		"create of an unstructured object": {
			call: func(ctx context.Context, c client.Client) error {
				u := &unstructured.Unstructured{}
				u.SetAPIVersion("example.com/v1")
				u.SetKind("Gadget")
				u.SetName("one")
				return c.Create(ctx, u)
			},
			want: []string{"CreateActions: create example.com/v1, Kind=Gadget  *unstructured.Unstructured one"},
		},
		"update": {
			call: func(ctx context.Context, c client.Client) error { return c.Update(ctx, configMap()) },
			want: []string{"UpdateActions: update /v1, Kind=ConfigMap my-namespace *v1.ConfigMap one"},
		},
		"patch": {
			call: func(ctx context.Context, c client.Client) error { return c.Patch(ctx, configMap(), mergePatch) },
			want: []string{`PatchActions: patch /v1, Kind=ConfigMap my-namespace/one application/merge-patch+json {"a":"b"}`},
		},
		"patch by difference": {
			call: func(ctx context.Context, c client.Client) error {
				changed := configMap()
				changed.Data = map[string]string{"a": "b"}
				return c.Patch(ctx, changed, client.MergeFrom(configMap()))
			},
			want: []string{
				`PatchActions: patch /v1, Kind=ConfigMap my-namespace/one application/merge-patch+json {"data":{"a":"b"}}`,
			},
		},
		"patch of a duck": {
			call: func(ctx context.Context, c client.Client) error { return c.Patch(ctx, duck(), mergePatch) },
			want: []string{
				`PatchActions: patch fixture.trueup.dev/v1, Kind=Resource my-namespace/one application/merge-patch+json {"a":"b"}`,
			},
		},
		"delete": {
			call: func(ctx context.Context, c client.Client) error { return c.Delete(ctx, configMap()) },
			want: []string{"DeleteActions: delete /v1, Kind=ConfigMap my-namespace/one"},
		},
		"delete all": {
			call: func(ctx context.Context, c client.Client) error { return c.DeleteAllOf(ctx, &corev1.ConfigMap{}) },
			want: []string{"DeleteCollectionActions: delete-collection /v1, Kind=ConfigMap  labels= fields="},
		},
		"delete all that selectors match": {
			call: func(ctx context.Context, c client.Client) error {
				return c.DeleteAllOf(
					ctx, &corev1.ConfigMap{}, client.InNamespace("mine"), client.MatchingLabels{"a": "b"},
					client.MatchingFields{"c": "d"},
				)
			},
			want: []string{"DeleteCollectionActions: delete-collection /v1, Kind=ConfigMap mine labels=a=b fields=c=d"},
		},
		"apply": {
			call: func(ctx context.Context, c client.Client) error {
				return c.Apply(ctx, corev1apply.ConfigMap("one", "my-namespace"), owner)
			},
			want: []string{"ApplyActions: apply /v1, Kind=ConfigMap my-namespace/one *v1.ConfigMapApplyConfiguration"},
		},
		"status update": {
			call: func(ctx context.Context, c client.Client) error { return c.Status().Update(ctx, resource()) },
			want: []string{
				"StatusUpdateActions: update fixture.trueup.dev/v1, Kind=Resource my-namespace status *fixture.Resource one",
			},
		},
		"status update by the name of the subresource": {
			call: func(ctx context.Context, c client.Client) error {
				return c.SubResource("status").Update(ctx, resource())
			},
			want: []string{
				"StatusUpdateActions: update fixture.trueup.dev/v1, Kind=Resource my-namespace status *fixture.Resource one",
			},
		},
		"status patch": {
			call: func(ctx context.Context, c client.Client) error { return c.Status().Patch(ctx, resource(), mergePatch) },
			want: []string{
				`StatusPatchActions: patch fixture.trueup.dev/v1, Kind=Resource my-namespace/one status application/merge-patch+json {"a":"b"}`,
			},
		},
		"status apply": {
			call: func(ctx context.Context, c client.Client) error {
				return c.Status().Apply(ctx, corev1apply.Pod("one", "my-namespace"), owner)
			},
			want: []string{"StatusApplyActions: apply /v1, Kind=Pod my-namespace/one status *v1.PodApplyConfiguration"},
		},
		"status create": {
			call: func(ctx context.Context, c client.Client) error {
				return c.Status().Create(ctx, resource(), resource())
			},
			want: nil,
		},
		"subresource create": {
			call: func(ctx context.Context, c client.Client) error {
				return c.SubResource("eviction").Create(ctx, &corev1.Pod{ObjectMeta: objectMeta("one")}, &policyv1.Eviction{})
			},
			want: []string{"SubResourceActions: create /v1, Kind=Pod my-namespace/one eviction *v1.Eviction "},
		},
		"subresource update": {
			call: func(ctx context.Context, c client.Client) error {
				return c.SubResource("scale").Update(ctx, deployment(), client.WithSubResourceBody(&autoscalingv1.Scale{}))
			},
			want: []string{"SubResourceActions: update apps/v1, Kind=Deployment my-namespace/one scale *v1.Scale "},
		},
		"subresource update without a body of its own": {
			call: func(ctx context.Context, c client.Client) error {
				return c.SubResource("approval").Update(ctx, deployment())
			},
			want: []string{"SubResourceActions: update apps/v1, Kind=Deployment my-namespace approval *v1.Deployment one"},
		},
		"subresource patch": {
			call: func(ctx context.Context, c client.Client) error {
				return c.SubResource("scale").Patch(ctx, deployment(), mergePatch)
			},
			want: []string{
				`SubResourceActions: patch apps/v1, Kind=Deployment my-namespace/one scale application/merge-patch+json {"a":"b"}`,
			},
		},
		"subresource apply": {
			call: func(ctx context.Context, c client.Client) error {
				return c.SubResource("resize").Apply(ctx, corev1apply.Pod("one", "my-namespace"), owner)
			},
			want: []string{"SubResourceActions: apply /v1, Kind=Pod my-namespace/one resize *v1.PodApplyConfiguration"},
		},
		"reads": {
			call: func(ctx context.Context, c client.Client) error {
				return errors.Join(
					c.Get(ctx, client.ObjectKey{Name: "one"}, configMap()), c.List(ctx, &corev1.ConfigMapList{}),
					c.SubResource("scale").Get(ctx, deployment(), &autoscalingv1.Scale{}),
				)
			},
			want: nil,
		},
	}
	for name, test := range tests {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, fails=%t", name, fails), func(t *testing.T) {
				c := newTestClient(t)
				asked := 0
				c.PrependReactor("*", "*", func(Action) (bool, runtime.Object, error) {
					asked++
					if fails {
						return true, nil, errors.New("induced")
					}
					return true, &metav1.Status{Status: metav1.StatusSuccess}, nil
				})
				err := test.call(t.Context(), c)
				if (err != nil) != fails {
					t.Errorf("error = %v", err)
				}
				if asked == 0 {
					t.Error("no reactor was asked")
				}
				if diff := cmp.Diff(test.want, recorded(c)); diff != "" {
					t.Errorf("recorded (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// Calls that the API refuses are recorded too.
func TestClient_recordsWhatFails(t *testing.T) {
	c := newTestClient(t)
	if err := c.Update(t.Context(), &corev1.ConfigMap{ObjectMeta: objectMeta("missing")}); !apierrs.IsNotFound(err) {
		t.Errorf("error = %v", err)
	}
	if diff := cmp.Diff(
		[]string{"UpdateActions: update /v1, Kind=ConfigMap my-namespace *v1.ConfigMap missing"}, recorded(c),
	); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

// What is recorded is what was passed, whatever becomes of it.
func TestClient_recordsCopies(t *testing.T) {
	c := newTestClient(t)
	configMap := &corev1.ConfigMap{ObjectMeta: objectMeta("one"), Data: map[string]string{"a": "1"}}
	ac := corev1apply.ConfigMap("two", "my-namespace").WithData(map[string]string{"a": "1"})
	untyped := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "my-namespace", "name": "three"},
	}})
	if err := errors.Join(
		c.Create(t.Context(), configMap), c.Apply(t.Context(), ac, client.FieldOwner("me")), c.Apply(
			t.Context(), untyped, client.FieldOwner("me"),
		),
	); err != nil {
		t.Fatal(err)
	}
	if configMap.ResourceVersion == "" || ac.ResourceVersion == nil {
		t.Error("the fake has not changed what it was passed")
	}
	configMap.Data["a"], ac.Data["a"] = "2", "2"

	if diff := cmp.Diff(
		&corev1.ConfigMap{ObjectMeta: objectMeta("one"), Data: map[string]string{"a": "1"}}, c.CreateActions[0].GetObject(),
	); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(
		corev1apply.ConfigMap("two", "my-namespace").WithData(map[string]string{"a": "1"}),
		c.ApplyActions[0].GetApplyConfiguration(),
	); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
	got := c.ApplyActions[1].GetApplyConfiguration().(runtime.Unstructured).UnstructuredContent()
	if diff := cmp.Diff(map[string]any{"namespace": "my-namespace", "name": "three"}, got["metadata"]); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
}

func TestClient_generateName(t *testing.T) {
	c := newTestClient(t)
	var seenFirst, seenLast []string
	seen := func(names *[]string) ReactionFunc {
		return func(action Action) (bool, runtime.Object, error) {
			*names = append(*names, action.(CreateAction).GetObject().(client.Object).GetName())
			return false, nil, nil
		}
	}
	c.PrependReactor("create", "*", seen(&seenFirst))
	c.AddReactor("create", "*", seen(&seenLast))

	typed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "my-namespace", GenerateName: "typed-"}}
	untyped := &unstructured.Unstructured{}
	untyped.SetAPIVersion("v1")
	untyped.SetKind("Secret")
	untyped.SetGenerateName("untyped-")
	named := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "named", GenerateName: "typed-"}}
	if err := errors.Join(
		c.Create(t.Context(), typed), c.Create(t.Context(), untyped), c.Create(t.Context(), named),
	); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"typed-001", "untyped-002", "named"}, []string{
		typed.Name, untyped.GetName(), named.Name,
	}); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"", "", "named"}, seenFirst); diff != "" {
		t.Errorf("names a prepended reactor has seen (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"typed-001", "untyped-002", "named"}, seenLast); diff != "" {
		t.Errorf("names an added reactor has seen (-want +got):\n%s", diff)
	}
	for i, action := range c.CreateActions[:2] {
		if name := action.GetObject().(client.Object).GetName(); name != "" {
			t.Errorf("recorded [%d] with name %q", i, name)
		}
	}
}

// The API server cuts a long prefix, so that names fit into the value of a label.
func TestClient_generateName_long(t *testing.T) {
	for name, tc := range map[string]struct{ length, want int }{
		"fits": {58, 58}, "is cut": {59, 58}, "much longer": {250, 58},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: "my-namespace", GenerateName: strings.Repeat("a", tc.length),
			}}
			if err := newTestClient(t).Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Repeat("a", tc.want)+"001", obj.Name); diff != "" {
				t.Errorf("name (-want +got):\n%s", diff)
			}
		})
	}
}

// A reactor that handles the call, but leaves it to be executed, does not make names random.
func TestClient_generateName_handled(t *testing.T) {
	c := newTestClient(t)
	c.PrependReactor("create", "ConfigMap", func(Action) (bool, runtime.Object, error) { return true, nil, nil })
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "my-namespace", GenerateName: "my-"}}
	if err := c.Create(t.Context(), obj); err != nil || obj.Name != "my-001" {
		t.Errorf("name = %q, error = %v", obj.Name, err)
	}
}

func TestClient_isConcurrencySafe(t *testing.T) {
	c := newTestClient(t)
	var wait sync.WaitGroup
	const callers, calls = 8, 20
	for caller := range callers {
		wait.Go(func() {
			for range calls {
				obj := &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: "my-namespace", GenerateName: fmt.Sprintf("of-%d-", caller)},
				}
				if err := c.Create(t.Context(), obj); err != nil {
					t.Error(err)
				}
				c.AddReactor("get", "ConfigMap", func(Action) (bool, runtime.Object, error) { return false, nil, nil })
				c.PrependReactor("get", "ConfigMap", func(Action) (bool, runtime.Object, error) { return false, nil, nil })
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
					t.Error(err)
				}
				if err := c.Status().Update(t.Context(), obj); !apierrs.IsNotFound(err) {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if len(c.CreateActions) != callers*calls || len(c.StatusUpdateActions) != callers*calls {
		t.Errorf("recorded %d creates and %d status updates", len(c.CreateActions), len(c.StatusUpdateActions))
	}
}

// Without Realistic, subresources other than the status only seem to work.
func TestClient_executesSubResources(t *testing.T) {
	for _, executes := range []bool{false, true} {
		t.Run(fmt.Sprint(executes), func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: objectMeta("one")}
			c := newTestClient(t, pod.DeepCopy())
			c.executeSubResources = executes
			if err := c.SubResource("eviction").Create(t.Context(), pod, &policyv1.Eviction{}); err != nil {
				t.Error(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); apierrs.IsNotFound(err) != executes {
				t.Errorf("error after the eviction = %v", err)
			}
			if err := c.SubResource("unknown").Update(t.Context(), pod); (err != nil) != executes {
				t.Errorf("error of an unknown subresource = %v", err)
			}
		})
	}
}

func TestClient_watch(t *testing.T) {
	c := newTestClient(t)
	watching, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("my-namespace"))
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	if err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: objectMeta("one")}); err != nil {
		t.Fatal(err)
	}
	if event := <-watching.ResultChan(); event.Type != "ADDED" || event.Object.(client.Object).GetName() != "one" {
		t.Errorf("event = %v", event)
	}
	c.PrependReactor("watch", "ConfigMapList", InduceFailure("watch", "ConfigMapList"))
	if _, err := c.Watch(t.Context(), &corev1.ConfigMapList{}); err == nil ||
		err.Error() != "inducing failure for watch ConfigMapList" {
		t.Errorf("error = %v", err)
	}
}

func TestClient_addGiven(t *testing.T) {
	c := newTestClient(t)
	duck := fixture.NewDuck("my-namespace", "one")
	duck.Spec.Fields = map[string]string{"a": "1"}
	c.AddGiven(duck, wrapped{&corev1.ConfigMap{ObjectMeta: objectMeta("one")}})
	var resource fixture.Resource
	var configMap corev1.ConfigMap
	key := client.ObjectKey{Namespace: "my-namespace", Name: "one"}
	if err := errors.Join(c.Get(t.Context(), key, &resource), c.Get(t.Context(), key, &configMap)); err != nil {
		t.Fatal(err)
	}
	if resource.Spec.Fields["a"] != "1" || resource.CreationTimestamp.UnixMilli() != 1000 ||
		configMap.CreationTimestamp.UnixMilli() != 1000 {
		t.Errorf("got %v and %v", resource, configMap)
	}
	if recorded := recorded(c); recorded != nil {
		t.Errorf("recorded %q", recorded)
	}

	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "given object [1]") ||
			!strings.Contains(text, "already exists") {
			t.Errorf("panic = %s", text)
		}
	}()
	c.AddGiven(&corev1.ConfigMap{ObjectMeta: objectMeta("two")}, &corev1.ConfigMap{ObjectMeta: objectMeta("one")})
}

// wrapped is an object that only wraps another one.
type wrapped struct{ client.Object }

func (w wrapped) DeepCopyObject() runtime.Object { return w.Object.DeepCopyObject() }
