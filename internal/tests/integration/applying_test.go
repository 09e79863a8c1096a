// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/internal/engine/ownership"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/reconcilers"
)

// writeCounter counts the requests that may write.
type writeCounter struct {
	client.Client
	writes int
}

func (c *writeCounter) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	c.writes++
	return c.Client.Apply(ctx, obj, opts...)
}

func (c *writeCounter) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	c.writes++
	return c.Client.Create(ctx, obj, opts...)
}

func (c *writeCounter) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	c.writes++
	return c.Client.Update(ctx, obj, opts...)
}

func (c *writeCounter) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	c.writes++
	return c.Client.Patch(ctx, obj, patch, opts...)
}

// applier manages one object.
type applier struct {
	*env
	counting *writeCounter
	ctx      context.Context
	options  func(*reconcilers.ApplyingObjectManager[client.Object])
	manager  *reconcilers.ApplyingObjectManager[client.Object]
}

func newApplier(e *env, kind client.Object, options func(*reconcilers.ApplyingObjectManager[client.Object])) *applier {
	a := &applier{env: e, counting: &writeCounter{Client: e.Client}, options: options}
	config := reconcilers.Config{
		Client: a.counting, APIReader: e.Client, Recorder: &record.FakeRecorder{},
		Discovery: discovery.NewDiscoveryClientForConfigOrDie(e.RESTConfig()),
	}
	a.ctx = reconcilers.StashOriginalConfig(reconcilers.StashConfig(e.Context(), config), config)
	a.restart(kind)
	return a
}

// restart forgets what the manager has seen.
func (a *applier) restart(kind client.Object) {
	a.manager = &reconcilers.ApplyingObjectManager[client.Object]{Type: kind, FieldOwner: "applier"}
	if a.options != nil {
		a.options(a.manager)
	}
}

// manage returns the error and the number of writes of a reconcile with the latest object. It repeats a reconcile in
// which another client changed the object at the same time.
func (a *applier) manage(desired client.Object) (writes int, err error) {
	a.Helper()
	parent := newResource("parent", nil)
	parent.Namespace = a.Namespace
	for {
		before := a.counting.writes
		actual := desired.DeepCopyObject().(client.Object)
		if err := a.Get(a.ctx, client.ObjectKeyFromObject(desired), actual); client.IgnoreNotFound(err) != nil {
			a.Fatal(err)
		} else if err != nil {
			actual = nil
		}
		_, err = a.manager.Manage(a.ctx, parent, actual, desired.DeepCopyObject().(client.Object))
		if !apierrs.IsConflict(err) {
			return a.counting.writes - before, err
		}
	}
}

// TestAppliedObjectsAreInSync applies an object of each kind, typed and, without -short, unstructured. Further
// reconciles send no request, nor does the first one after a restart.
func TestAppliedObjectsAreInSync(t *testing.T) {
	e := newEnv(t)
	for _, desired := range appliedKinds(e.Namespace) {
		gvk, err := apiutil.GVKForObject(desired, e.Scheme())
		e.Must(err)
		content, err := ownership.Document(desired)
		e.Must(err)
		loose := &unstructured.Unstructured{Object: content}
		loose.SetGroupVersionKind(gvk)
		forms := map[string]client.Object{"typed": desired, "unstructured": loose}
		if testing.Short() {
			delete(forms, "unstructured")
		}
		for form, desired := range forms {
			name := form + " " + gvk.Kind + " " + desired.GetName()
			namespaced, err := e.IsObjectNamespaced(desired)
			e.Must(err)
			if namespaced {
				desired.SetNamespace(e.Namespace)
			}
			if form == "unstructured" {
				desired.SetName("loose-" + desired.GetName())
			}
			a := newApplier(e, empty.Like(desired), nil)
			e.Cleanup(func() { _ = e.Delete(context.Background(), desired) })
			type counts struct{ First, Second, AfterRestart, Last int }
			var got counts
			for _, step := range []*int{&got.First, &got.Second, &got.AfterRestart, &got.Last} {
				if step == &got.AfterRestart {
					a.restart(empty.Like(desired))
				}
				writes, err := a.manage(desired)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				*step = writes
			}
			if diff := cmp.Diff(counts{First: 1}, got); diff != "" {
				t.Errorf("writes of %s (-want +got):\n%s", name, diff)
			}
		}
	}
}
