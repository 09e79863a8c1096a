// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/testing/internal/fakeapi"
	rtime "trueup.dev/time"
)

// caseClient is the client of a case on a cluster. Its objects are those that the case sees.
type caseClient struct{ *API }

var _ client.Client = (*caseClient)(nil)

// Get implements [client.Client].
func (c *caseClient) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	return c.get(ctx, false, key, obj, opts)
}

// List implements [client.Client].
func (c *caseClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.list(ctx, false, list, opts)
}

// Create implements [client.Client].
func (c *caseClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	options := (&client.CreateOptions{}).ApplyOptions(opts)
	return c.write(obj, func(sent, live *unstructured.Unstructured) error {
		foreign := c.hideNew(live)
		if err := c.createNew(ctx, live, options); err != nil {
			return err
		}
		return c.created(ctx, sent, live, foreign, options.DryRun)
	})
}

// createNew creates an object. If it is a namespace that an earlier case has left, that one is changed instead.
func (c *caseClient) createNew(
	ctx context.Context, live *unstructured.Unstructured, options *client.CreateOptions,
) error {
	sent := live.DeepCopy()
	err := createReal(ctx, c.real, live, options)
	if !apierrs.IsAlreadyExists(err) || len(options.DryRun) > 0 {
		return err
	}
	id, idErr := c.identify(sent.GroupVersionKind(), client.ObjectKeyFromObject(sent))
	if idErr != nil || !isNamespace(id) || c.find(id) != nil {
		return err
	}
	if ours, takeErr := c.takeNamespace(ctx, sent, live); takeErr != nil || !ours {
		return err
	}
	return nil
}

// Update implements [client.Client].
func (c *caseClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	options := (&client.UpdateOptions{}).ApplyOptions(opts)
	return c.write(obj, func(sent, live *unstructured.Unstructured) error {
		rec, err := c.target(ctx, sent, true)
		if err != nil {
			return err
		}
		if rec == nil {
			// an update creates objects of some kinds
			foreign := c.hideNew(live)
			if err := c.real.Update(ctx, live, options); err != nil {
				return err
			}
			return c.created(ctx, sent, live, foreign, options.DryRun)
		}
		var foreign []metav1.OwnerReference
		changed, err := c.change(ctx, rec, sent.GroupVersionKind(), sent.GetResourceVersion(), c.update(rec, sent, &foreign,
			func(u *unstructured.Unstructured) error { return c.real.Update(ctx, u, options) }))
		if err != nil {
			return err
		}
		c.noteUnchanged(rec, sent, changed)
		live.Object = changed.Object
		c.updated(rec, sent, live, foreign, options.DryRun)
		return nil
	})
}

// update returns the call that updates an object of the case, or a subresource that has its metadata. It sets foreign
// to the owner references that are not sent to the cluster.
func (c *caseClient) update(
	rec *record, sent *unstructured.Unstructured, foreign *[]metav1.OwnerReference, send func(
		*unstructured.Unstructured,
	) error,
) changeCall {
	return func(version string, rebase func(*unstructured.Unstructured)) (*unstructured.Unstructured, error) {
		u := sent.DeepCopy()
		c.lock.Lock()
		rec.hide(u)
		*foreign = c.hideOwners(u)
		c.lock.Unlock()
		rebase(u)
		if sent.GetResourceVersion() != "" {
			u.SetResourceVersion(version)
		}
		return u, send(u)
	}
}

// write calls a function that sends a copy of an object, and sets the object to the result.
func (c *caseClient) write(obj client.Object, call func(sent, live *unstructured.Unstructured) error) error {
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return errors.New("metadata alone cannot be created or updated, use Patch")
	}
	sent, err := c.toUnstructured(obj)
	if err != nil {
		return err
	}
	live := sent.DeepCopy()
	if err := call(sent, live); err != nil {
		return err
	}
	return into(live.Object, obj)
}

// hideNew translates the metadata of an object that will be created for the cluster.
func (c *caseClient) hideNew(live *unstructured.Unstructured) (foreign []metav1.OwnerReference) {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.hideOwners(live)
}

// created records a new object, and sets live to what the case sees.
func (c *caseClient) created(
	ctx context.Context, sent, live *unstructured.Unstructured, foreign []metav1.OwnerReference, dryRun []string,
) error {
	id, err := c.identify(live.GroupVersionKind(), client.ObjectKeyFromObject(live))
	if err != nil {
		return err
	}
	given := sent.DeepCopy()
	if c.realistic {
		given.SetUID(fakeapi.PredictableUID(c.uids.Add(1)))
		given.SetCreationTimestamp(serverTime(ctx))
		given.SetGeneration(live.GetGeneration())
	}
	rec := newRecord(id, given, live, "1")
	rec.owners, rec.foreign = sent.GetOwnerReferences(), foreign
	if len(dryRun) == 0 {
		c.add(rec)
		c.settle(rec, sent.Object, live)
	}
	c.reveal(rec, live)
	return nil
}

// updated records an updated object and its owners, and sets live to what the case sees.
func (c *caseClient) updated(
	rec *record, sent, live *unstructured.Unstructured, foreign []metav1.OwnerReference, dryRun []string,
) {
	if len(dryRun) == 0 {
		c.lock.Lock()
		rec.owners, rec.foreign = sent.GetOwnerReferences(), foreign
		c.lock.Unlock()
	}
	c.written(rec, sent.Object, live, dryRun)
}

// written records a changed object, and sets live to what the case sees.
func (c *caseClient) written(rec *record, sent map[string]any, live *unstructured.Unstructured, dryRun []string) {
	if len(dryRun) == 0 {
		c.settle(rec, sent, live)
	}
	c.reveal(rec, live)
}

// reveal sets live to what the case sees.
func (a *API) reveal(rec *record, live *unstructured.Unstructured) {
	a.lock.Lock()
	defer a.lock.Unlock()
	live.Object = a.shownOf(rec, live).Object
}

// target returns the object of the case that a write is for. It returns nil if neither the case nor another client has
// the object, and the write may create it.
func (a *API) target(ctx context.Context, u *unstructured.Unstructured, creates bool) (*record, error) {
	id, err := a.identify(u.GroupVersionKind(), client.ObjectKeyFromObject(u))
	if err != nil {
		return nil, err
	}
	rec := a.find(id)
	switch {
	case rec != nil && rec.borrowed:
		resource := schema.GroupResource{Group: id.group, Resource: "namespaces"}
		return nil, apierrs.NewForbidden(
			resource, id.name, errors.New("the object was not created by the case, which may only read it"),
		)
	case rec != nil && !creates:
		return rec, nil
	}
	live := newUnstructured(u.GroupVersionKind(), id.namespace, id.name)
	err = a.real.Get(ctx, client.ObjectKeyFromObject(live), live)
	switch {
	case apierrs.IsNotFound(err) && creates:
		return nil, nil
	case err != nil:
		return nil, err
	case rec != nil && rec.uid == live.GetUID():
		return rec, nil
	}
	a.note("the case has written to %s, which it did not create", id)
	return nil, a.notFound(u.GroupVersionKind(), id.name)
}

// Delete implements [client.Client].
func (c *caseClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	kind, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return err
	}
	u := newUnstructured(kind, obj.GetNamespace(), obj.GetName())
	rec, err := c.target(ctx, u, false)
	if err != nil {
		return err
	}
	return c.delete(ctx, rec, u, (&client.DeleteOptions{}).ApplyOptions(opts))
}

func (c *caseClient) delete(
	ctx context.Context, rec *record, u *unstructured.Unstructured, options *client.DeleteOptions,
) error {
	preconditions, sent := &metav1.Preconditions{}, ""
	if options.Preconditions != nil {
		preconditions = options.Preconditions.DeepCopy()
	}
	c.lock.Lock()
	if preconditions.UID == nil || *preconditions.UID == rec.given.GetUID() {
		preconditions.UID = &rec.uid
	}
	c.lock.Unlock()
	if preconditions.ResourceVersion != nil {
		sent = *preconditions.ResourceVersion
	}
	options.Preconditions = preconditions
	_, err := c.change(ctx, rec, u.GroupVersionKind(), sent, func(version string, _ func(
		*unstructured.Unstructured,
	),
	) (*unstructured.Unstructured, error) {
		if sent != "" {
			preconditions.ResourceVersion = &version
		}
		return u.DeepCopy(), c.real.Delete(ctx, u, options)
	})
	if err != nil || len(options.DryRun) > 0 {
		return err
	}
	live := newUnstructured(u.GroupVersionKind(), u.GetNamespace(), u.GetName())
	if err := c.real.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if live.GetUID() == rec.uid {
		c.settle(rec, nil, c.deleted(ctx, rec, live))
	}
	return nil
}

// deleted returns an object that is being deleted without the writes of other clients. A deletion changes only
// finalizers.
func (c *caseClient) deleted(
	ctx context.Context, rec *record, live *unstructured.Unstructured,
) *unstructured.Unstructured {
	c.lock.Lock()
	defer c.lock.Unlock()
	if rec.given.GetDeletionTimestamp() == nil {
		rec.given.SetDeletionTimestamp(new(serverTime(ctx)))
		if c.realistic {
			rec.given.SetDeletionGracePeriodSeconds(new(int64(0)))
		}
	}
	known := rec.known.DeepCopy()
	copyIdentity(known, live)
	known.SetFinalizers(live.GetFinalizers())
	return known
}

// serverTime returns the time of the case, in seconds as servers store it.
func serverTime(ctx context.Context) metav1.Time {
	return metav1.NewTime(rtime.RetrieveNow(ctx).Truncate(time.Second))
}

// DeleteAllOf implements [client.Client]. Only objects of the case are deleted, one by one: there may be others.
func (c *caseClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	kind, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return err
	}
	options := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace && options.Namespace == "" {
		return apierrs.NewMethodNotSupported(mapping.Resource.GroupResource(), "delete-collection across namespaces")
	}
	live := &unstructured.UnstructuredList{}
	live.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.real.List(ctx, live, &options.ListOptions); err != nil {
		return err
	}
	for i := range live.Items {
		found := &live.Items[i]
		id, err := c.identify(kind, client.ObjectKeyFromObject(found))
		if err != nil {
			return err
		}
		if rec := c.find(id); rec == nil || rec.borrowed || rec.readerOnly || rec.uid != found.GetUID() {
			continue
		} else if err := c.delete(ctx, rec, found, new(options.DeleteOptions)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// Scheme implements [client.Client].
func (c *caseClient) Scheme() *runtime.Scheme { return c.scheme }

// RESTMapper implements [client.Client].
func (c *caseClient) RESTMapper() meta.RESTMapper { return c.shownMapper }

// GroupVersionKindFor implements [client.Client].
func (c *caseClient) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return c.real.GroupVersionKindFor(obj)
}

// IsObjectNamespaced implements [client.Client].
func (c *caseClient) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return c.real.IsObjectNamespaced(obj)
}
