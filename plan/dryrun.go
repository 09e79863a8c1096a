// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
)

const (
	statusSubresource = "status"
	verbDelete        = "delete"
)

type memEvents = []memapi.Event

// dryRun asks an API server what it would store.
type dryRun struct {
	mu sync.Mutex
	// refused are the requests that RBAC forbids, which are not repeated.
	refused map[string]bool
}

func (d *dryRun) isRefused(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refused[id]
}

func (d *dryRun) refuse(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused[id] = true
}

// unknownError is what a dry run cannot tell.
type unknownError string

func (e unknownError) Error() string { return string(e) }

// store returns what the API server would store for an object. The object in the cluster is nil if it would be created.
func (d *dryRun) store(
	ctx context.Context, cluster client.Client, planned *unstructured.Unstructured, current map[string]any,
	subresource string,
) (*unstructured.Unstructured, error) {
	verb := "create"
	if current != nil {
		verb = "update"
	}
	id := verb + " " + planned.GetKind() + "/" + subresource + " in " + planned.GetNamespace()
	if d.isRefused(id) {
		return nil, nil
	}
	obj := planned.DeepCopy()
	obj.SetManagedFields(nil)
	name := obj.GetName()
	var err error
	if current == nil {
		obj.SetResourceVersion("")
		obj.SetUID("")
		err = cluster.Create(ctx, obj, client.DryRunAll)
	} else {
		metadata := (&unstructured.Unstructured{Object: current})
		obj.SetResourceVersion(metadata.GetResourceVersion())
		obj.SetUID(metadata.GetUID())
		if subresource == statusSubresource {
			err = cluster.Status().Update(ctx, obj, client.DryRunAll)
		} else {
			err = cluster.Update(ctx, obj, client.DryRunAll)
		}
	}
	if err != nil {
		return nil, d.classify(err, id, verb, planned.GetKind())
	}
	obj.SetName(name)
	return obj, nil
}

// delete asks whether the API server would accept a deletion.
func (d *dryRun) delete(ctx context.Context, cluster client.Client, target objectID, current map[string]any) error {
	id := "delete " + target.kind.Kind + " in " + target.key.Namespace
	if d.isRefused(id) {
		return nil
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(target.kind)
	obj.SetNamespace(target.key.Namespace)
	obj.SetName(target.key.Name)
	uid := (&unstructured.Unstructured{Object: current}).GetUID()
	err := cluster.Delete(ctx, obj, client.DryRunAll, client.Preconditions{UID: &uid})
	return d.classify(err, id, verbDelete, target.kind.Kind)
}

// classify returns an unknownError if the API server could not tell, and otherwise the error that the reconciler gets.
func (d *dryRun) classify(err error, id, verb, kind string) error {
	switch {
	case err == nil:
		return nil
	case apierrs.IsForbidden(err) && strings.Contains(err.Error(), " cannot "+verb+" resource "),
		apierrs.IsMethodNotSupported(err), apierrs.IsUnauthorized(err):
		d.refuse(id)
		return unknownError(fmt.Sprintf(
			"what the API server would change or refuse for %s %s: the dry run is forbidden", verb, kind,
		))
	case strings.Contains(err.Error(), "does not support dry run"):
		d.refuse(id)
		return unknownError(fmt.Sprintf("%s %s: an admission webhook does not support dry run", verb, kind))
	case apierrs.IsConflict(err), apierrs.IsNotFound(err):
		return unknownError(fmt.Sprintf("%s %s: the cluster has changed during the plan", verb, kind))
	case apierrs.ReasonForError(err) == "":
		return unknownError(fmt.Sprintf("%s %s: the dry run failed: %v", verb, kind, err))
	}
	return err
}

// same reports whether two objects are equal, except for what changes with each write.
func same(a, b map[string]any) bool {
	return b != nil && equality.Semantic.DeepEqual(stripped(a), stripped(b))
}

// serverFields are the fields of the metadata that only a server sets.
var serverFields = []string{
	"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink",
}

// stripped returns an object without the metadata that only a server sets.
func stripped(content map[string]any) map[string]any {
	if content == nil {
		return nil
	}
	copied := runtime.DeepCopyJSON(content)
	if metadata, ok := copied["metadata"].(map[string]any); ok {
		for _, name := range serverFields {
			delete(metadata, name)
		}
	}
	return copied
}
