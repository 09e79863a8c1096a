// SPDX-License-Identifier: Apache-2.0

// Package apitest is what tests on a real Kubernetes API have in common.
package apitest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"trueup.dev/internal/await"
	"trueup.dev/sandbox"
)

// Patience is how long something may take before a test gives it up.
const Patience = time.Minute

// Main is a TestMain that keeps Kubernetes' own logs out of the output.
func Main(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // watches complain when the control plane goes
	m.Run()
}

// Env is a namespace of a real Kubernetes API, and the test it is for.
type Env struct {
	testing.TB
	client.Client // an administrator's, without a cache
	*sandbox.Env
}

// New returns a namespace, as sandbox.ForTest does. The client knows the kinds of the scheme, and without one those of Kubernetes.
func New(t testing.TB, scheme *runtime.Scheme, options sandbox.TestOptions) *Env {
	t.Helper()
	e := &Env{TB: t, Env: sandbox.ForTest(t, options)}
	c, err := client.New(e.RESTConfig(), client.Options{Scheme: scheme})
	e.Must(err)
	e.Client = c
	return e
}

// Must ends the test if there is an error.
func (e *Env) Must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// Eventually waits until check has nothing to object to.
func (e *Env) Eventually(check func() error) {
	e.Helper()
	await.Nil(e, Patience, check)
}

// Go runs something in the background that must not end with an error. It stops with the test, or earlier with the returned function, which waits for its end.
func (e *Env) Go(what string, run func(context.Context) error) (stop func()) {
	e.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				e.Errorf("%s ended with: %v", what, err)
			}
		case <-time.After(Patience):
			e.Errorf("%s does not end: is it waiting for a watch that it may not have?", what)
		}
	})
	e.Cleanup(stop)
	return stop
}

// Add creates objects, in the namespace of the test unless they name another.
func (e *Env) Add(objects ...client.Object) {
	e.Helper()
	for _, object := range objects {
		e.place(object)
		e.Must(e.Create(e.Context(), object))
	}
}

// Read reads an object by its name, in the namespace of the test unless it names another.
func (e *Env) Read(object client.Object) error {
	e.place(object)
	return e.Get(e.Context(), client.ObjectKeyFromObject(object), object)
}

func (e *Env) place(object client.Object) {
	if object.GetNamespace() == "" {
		object.SetNamespace(e.Namespace)
	}
}

// Change reads an object, changes it and writes it, again if another writer was faster.
func Change[T client.Object](e *Env, object T, apply func(T)) {
	e.Helper()
	e.Eventually(func() error {
		e.Must(e.Read(object))
		apply(object)
		err := e.Update(e.Context(), object)
		if err != nil && !apierrs.IsConflict(err) {
			e.Fatal(err)
		}
		return err
	})
}

// Until reads an object until it is as it should be.
func Until[T client.Object](e *Env, object T, check func(T) error) {
	e.Helper()
	e.Eventually(func() error {
		if err := e.Read(object); err != nil {
			return err
		}
		return check(object)
	})
}

// Gone waits until an object is not there any more.
func (e *Env) Gone(object client.Object) {
	e.Helper()
	e.Eventually(func() error {
		err := e.Read(object)
		if err == nil {
			return fmt.Errorf("%T %s is still there", object, object.GetName())
		}
		return client.IgnoreNotFound(err)
	})
}

// ReleaseAtEnd takes the finalizers off the objects of a kind that the test leaves behind: no controller will do it any more, and the namespace could not go.
func (e *Env) ReleaseAtEnd(list client.ObjectList) {
	e.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		e.Must(e.List(ctx, list, client.InNamespace(e.Namespace)))
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		e.Must(meta.EachListItem(list, func(object runtime.Object) error {
			return client.IgnoreNotFound(e.Patch(ctx, object.(client.Object), patch))
		}))
	})
}
