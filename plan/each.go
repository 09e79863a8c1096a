// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"strings"
	"sync"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
)

// Selection selects objects. The handlers of the controllers' watches decide which requests follow from them, as they
// do when a controller starts.
type Selection struct {
	// Kind is the kind of the objects. If it is empty, all watched kinds are meant, and the plans are for all requests
	// that the controllers reconcile when they start.
	Kind schema.GroupVersionKind
	// Namespace is the namespace of the objects. Defaults to all.
	Namespace string
	// Name is the name of one object. Requires Kind.
	Name string
	// Labels selects objects by their labels. Defaults to all.
	Labels labels.Selector
	// Controller is the name of the only controller whose requests are planned. Defaults to all.
	Controller string
}

// Each calls a function with a plan for each request that follows from the selected objects. Each plan starts from the
// state of the cluster, not from the plan before. [Options.Parallel] plans are made at the same time; the function is
// called with one after the other, in the order of the objects. Objects are listed in pages; of the requests only their
// names stay in memory. The error is the error of the function, of a list, or of [Planner.Plan].
func (p *Planner) Each(ctx context.Context, selection Selection, each func(*Plan) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if selection.Controller != "" {
		if _, err := p.lane.queueOf(Request{Controller: selection.Controller}); err != nil {
			return err
		}
	}
	kinds := p.lane.informers.kinds()
	if selection.Kind != (schema.GroupVersionKind{}) {
		kinds = []schema.GroupVersionKind{selection.Kind}
	}
	p.forget()
	e := &eachPlan{planner: p, lanes: []*lane{p.lane}, selection: selection, each: each, seen: map[Request]bool{}}
	defer func() {
		for _, more := range e.lanes[1:] {
			more.close()
		}
	}()
	for _, kind := range kinds {
		if err := e.kind(ctx, kind); err != nil {
			return err
		}
	}
	return nil
}

// eachPlan makes plans.
type eachPlan struct {
	planner   *Planner
	lanes     []*lane
	selection Selection
	each      func(*Plan) error
	seen      map[Request]bool
}

func (e *eachPlan) kind(ctx context.Context, kind schema.GroupVersionKind) error {
	list, err := e.listOf(kind)
	if err != nil {
		return err
	}
	if e.selection.Name != "" {
		obj, err := item(kind, list)
		if err != nil {
			return err
		}
		key := client.ObjectKey{Namespace: e.selection.Namespace, Name: e.selection.Name}
		if err := e.planner.cluster.Get(ctx, key, obj); err != nil {
			return fmt.Errorf("plan: %w", err)
		}
		return e.plans(ctx, e.requests(kind, []client.Object{obj}))
	}
	options := &client.ListOptions{Namespace: e.selection.Namespace, LabelSelector: e.selection.Labels}
	if mapping, err := e.planner.cluster.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err == nil &&
		mapping.Scope.Name() == meta.RESTScopeNameRoot {
		options.Namespace = ""
	}
	var page []client.Object
	flush := func() error {
		requests := e.requests(kind, page)
		page = nil
		return e.plans(ctx, requests)
	}
	err = eachPage(ctx, e.planner.cluster, list, options, func(obj client.Object) error {
		page = append(page, obj)
		if len(page) < pageSize {
			return nil
		}
		return flush()
	})
	switch {
	case apierrs.IsNotFound(err):
		return nil // the definition was deleted
	case err != nil:
		return fmt.Errorf("plan: %w", err)
	}
	return flush()
}

// listOf returns an empty list of a kind.
func (e *eachPlan) listOf(kind schema.GroupVersionKind) (client.ObjectList, error) {
	scheme := e.planner.cluster.Scheme()
	listKind := kind.GroupVersion().WithKind(kind.Kind + "List")
	if scheme.Recognizes(listKind) {
		made, err := scheme.New(listKind)
		if err != nil {
			return nil, err
		}
		return made.(client.ObjectList), nil
	}
	var list client.ObjectList = &metav1.PartialObjectMetadataList{}
	for _, i := range e.planner.lane.informers.all {
		if i.kind == kind && i.form != onlyMetadata {
			list = &unstructured.UnstructuredList{}
		}
	}
	list.GetObjectKind().SetGroupVersionKind(listKind)
	return list, nil
}

// requests returns the requests that the handlers of the watches add for objects.
func (e *eachPlan) requests(kind schema.GroupVersionKind, objects []client.Object) []Request {
	l := e.planner.lane
	l.begin()
	_ = l.add()
	for _, obj := range objects {
		_ = l.informers.deliver(memapi.Event{
			Type: watch.Added, Kind: kind, Key: client.ObjectKeyFromObject(obj), Object: obj,
		})
	}
	var requests []Request
	for _, q := range l.manager.queues {
		for request, ok := q.take(); ok; request, ok = q.take() {
			r := newRequest(q.name, request)
			if !e.seen[r] && (e.selection.Controller == "" || e.selection.Controller == q.name) {
				e.seen[r] = true
				requests = append(requests, r)
			}
		}
	}
	return requests
}

// plans makes a plan for each request, in all lanes, and passes the plans on in the order of the requests.
func (e *eachPlan) plans(ctx context.Context, requests []Request) error {
	for len(e.lanes) < min(e.planner.options.Parallel, len(requests)) {
		more, err := e.planner.lane.another(ctx, e.planner.setUp)
		if err != nil {
			return err
		}
		e.lanes = append(e.lanes, more)
	}
	var working sync.WaitGroup
	defer working.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	free := make(chan *lane, len(e.lanes))
	for _, l := range e.lanes {
		free <- l
	}
	answers := make(chan chan answer, len(e.lanes))
	working.Go(func() {
		defer close(answers)
		for _, r := range requests {
			l, made := <-free, make(chan answer, 1)
			select {
			case answers <- made:
			case <-ctx.Done():
				return
			}
			working.Go(func() {
				p, err := l.plan(ctx, r)
				made <- answer{p, err}
				free <- l
			})
		}
	})
	for made := range answers {
		a := <-made
		if a.err != nil {
			return a.err
		}
		if err := e.each(a.plan); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// answer is a plan, or the reason why it could not be made.
type answer struct {
	plan *Plan
	err  error
}

// KindFor returns the watched kind for a resource as users name it: by its kind, singular or plural, in upper or lower
// case, with or without the group, for example "deployment", "Deployments" or "deployments.apps".
func (p *Planner) KindFor(name string) (schema.GroupVersionKind, error) {
	var known []string
	for _, kind := range p.lane.informers.kinds() {
		names := []string{strings.ToLower(kind.Kind)}
		if mapping, err := p.cluster.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err == nil {
			names = append(names, mapping.Resource.Resource)
		}
		known = append(known, names[len(names)-1])
		for _, n := range names {
			if lower := strings.ToLower(name); lower == n || lower == n+"."+kind.Group {
				return kind, nil
			}
		}
	}
	return schema.GroupVersionKind{}, fmt.Errorf(
		"no controller watches %q, must be one of %s", name, strings.Join(known, ", "),
	)
}
