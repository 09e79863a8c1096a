// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/memapi/workloads"
)

const (
	// bookmarkInterval is the time between bookmarks in watches that ask for them.
	bookmarkInterval = time.Minute
	// batch is how many actions the controllers perform before clients get their turn.
	batch = 100
)

// managerName is the field manager of all controllers.
const managerName = "kube-controller-manager"

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// controllers are the garbage collector, the namespace controller, and the controllers of workloads. They act after
// each write.
type controllers struct {
	server *Server
	seen   int64 // the version after the last event seen
	queue  []item
	queued map[item]bool
	errors map[item]int // consecutive errors
	failed map[item]int // consecutive errors of the garbage collector
	// garbage is set if there may be garbage.
	garbage bool
}

// item is an object that a controller has to act on.
type item struct {
	kind schema.GroupVersionKind
	key  client.ObjectKey
}

// runControllers runs until the server stops.
func (s *Server) runControllers() {
	apply.LoadSchemas() // before the lock is held, so that reads do not wait
	c := &controllers{server: s, queued: map[item]bool{}, errors: map[item]int{}, failed: map[item]int{}}
	bookmarks := time.NewTicker(bookmarkInterval)
	defer bookmarks.Stop()
	s.mu.Lock()
	for _, namespace := range s.api.List(namespaceKind) { // the namespaces of a new server are not part of its events
		c.add(item{namespaceKind, client.ObjectKeyFromObject(namespace)})
	}
	s.mu.Unlock()
	s.notify()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-bookmarks.C:
			s.mu.Lock()
			s.api.Bookmark()
			s.mu.Unlock()
		case <-s.changed:
			for c.act() && s.ctx.Err() == nil {
			}
		}
	}
}

// act performs the next actions, and reports whether more remain.
func (c *controllers) act() bool {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept := s.options.History; int64(len(s.api.Events(0))) > 2*kept {
		defer func() { s.api.Forget(min(c.seen, s.api.Version()-kept)) }()
	}
	if s.options.DisableControllers {
		c.seen = s.api.Version()
		return false
	}
	c.observe()
	for n := 0; len(c.queue) > 0; n++ {
		if n == batch {
			return true
		}
		next := c.queue[0]
		c.queue = c.queue[1:]
		delete(c.queued, next)
		c.perform(next)
		c.observe()
	}
	if !c.garbage {
		return false
	}
	c.garbage = false
	for _, step := range s.api.Garbage() {
		i, err := item{step.Kind, step.Key}, s.api.Collect(step)
		if err == nil {
			c.garbage = true // another step may follow
			delete(c.failed, i)
		} else if c.failed[i]++; c.failed[i] == 1 {
			s.report(fmt.Sprintf("collect garbage: %s %s %s", step.Type, step.Kind.Kind, step.Key), err)
		}
	}
	s.updateDefinitions()
	return c.garbage || s.api.Version() > c.seen
}

// observe queues the objects that have changed since it was last called.
func (c *controllers) observe() {
	for _, e := range c.server.api.Events(c.seen) {
		c.seen = e.Version
		c.garbage = c.garbage || e.Type == watch.Deleted || e.Object.GetDeletionTimestamp() != nil ||
			len(e.Object.GetOwnerReferences()) > 0
		if e.Kind == namespaceKind && e.Type == watch.Added {
			c.add(item{e.Kind, e.Key})
		}
		c.follow(e)
	}
}

// follow queues a workload, and the workload that controls an object.
func (c *controllers) follow(e memapi.Event) {
	if workloads.Handles(e.Kind) && e.Type != watch.Deleted {
		c.add(item{e.Kind, e.Key})
	}
	for _, obj := range []client.Object{e.Object, e.Old} {
		if obj == nil {
			continue
		}
		if owner := metav1.GetControllerOf(obj); owner != nil {
			kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
			if workloads.Handles(kind) {
				c.add(item{kind, client.ObjectKey{Namespace: e.Key.Namespace, Name: owner.Name}})
			}
		}
	}
}

func (c *controllers) add(i item) {
	if !c.queued[i] {
		c.queued[i] = true
		c.queue = append(c.queue, i)
	}
}

// maxErrors is how often an action is repeated that fails, for example because a quota refuses a pod.
const maxErrors = 3

func (c *controllers) perform(i item) {
	s := c.server
	stored := s.api.Get(i.kind, i.key)
	if stored == nil {
		return
	}
	api := s.api.Client(managerName)
	if i.kind.Kind == "Pod" {
		if s.options.DisablePods {
			return
		}
		api = s.api.Client("kubelet")
	}
	var err error
	if namespace, ok := stored.(*corev1.Namespace); ok {
		err = s.furnish(s.ctx, api, namespace)
	} else {
		obj := stored.DeepCopyObject().(client.Object)
		obj.GetObjectKind().SetGroupVersionKind(i.kind)
		err = workloads.Act(s.ctx, api, obj)
	}
	if err == nil {
		delete(c.errors, i)
		return
	}
	switch c.errors[i]++; {
	case c.errors[i] < maxErrors:
		c.add(i)
	case c.errors[i] == maxErrors:
		s.report(fmt.Sprintf("the controller of %s %s", i.kind.Kind, i.key), err)
	}
}
