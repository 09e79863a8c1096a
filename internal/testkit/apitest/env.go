// SPDX-License-Identifier: Apache-2.0

// Package apitest provides helpers for tests on a real Kubernetes API.
package apitest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"trueup.dev/internal/testkit/await"
	"trueup.dev/sandbox"
)

// Timeout is the timeout of each wait in a test.
const Timeout = time.Minute

// Main is a TestMain that suppresses the logs of Kubernetes libraries.
func Main(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // watches log errors when the control plane stops
	m.Run()
}

// Env is a namespace of a real Kubernetes API for one test.
type Env struct {
	testing.TB
	client.Client // an administrator's client without a cache
	*sandbox.Env
}

// New returns a namespace, as sandbox.ForTest does. The client uses the scheme, or the scheme of Kubernetes if it is
// nil.
func New(t testing.TB, scheme *runtime.Scheme, options sandbox.TestOptions) *Env {
	t.Helper()
	e := &Env{TB: t, Env: sandbox.ForTest(t, options)}
	c, err := client.New(e.RESTConfig(), client.Options{Scheme: scheme})
	e.Must(err)
	e.Client = c
	return e
}

// Must ends the test if err is not nil.
func (e *Env) Must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// Eventually waits until check returns nil.
func (e *Env) Eventually(check func() error) {
	e.Helper()
	await.Nil(e, Timeout, check)
}

// Go runs a function in the background. The test fails if it returns an error. It stops with the test, or earlier when
// the returned function is called, which waits for its end.
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
				e.Errorf("%s returned an error: %v", what, err)
			}
		case <-time.After(Timeout):
			e.Errorf("%s did not stop: it may be waiting for a watch that is forbidden", what)
		}
	})
	e.Cleanup(stop)
	return stop
}

// Add creates objects, in the namespace of the test unless they have a namespace.
func (e *Env) Add(objects ...client.Object) {
	e.Helper()
	for _, object := range objects {
		e.place(object)
		e.Must(e.Create(e.Context(), object))
	}
}

// AddQuota creates a quota of one resource, and waits until it is in force.
func (e *Env) AddQuota(name string, of corev1.ResourceName, limit string) *corev1.ResourceQuota {
	e.Helper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{of: resource.MustParse(limit)}},
	}
	e.Add(quota)
	Until(e, quota, func(quota *corev1.ResourceQuota) error {
		if len(quota.Status.Hard) == 0 {
			return errors.New("the quota is not in force yet")
		}
		return nil
	})
	return quota
}

// Read reads an object by its name, in the namespace of the test unless it has a namespace.
func (e *Env) Read(object client.Object) error {
	e.place(object)
	return e.Get(e.Context(), client.ObjectKeyFromObject(object), object)
}

func (e *Env) place(object client.Object) {
	if object.GetNamespace() == "" {
		object.SetNamespace(e.Namespace)
	}
}

// Change reads an object, changes it and writes it. It retries conflicts.
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

// Until reads an object until check returns nil.
func Until[T client.Object](e *Env, object T, check func(T) error) {
	e.Helper()
	e.Eventually(func() error {
		if err := e.Read(object); err != nil {
			return err
		}
		return check(object)
	})
}

// WaitForDeletion waits until an object no longer exists.
func (e *Env) WaitForDeletion(object client.Object) {
	e.Helper()
	e.Eventually(func() error {
		err := e.Read(object)
		if err == nil {
			return fmt.Errorf("%T %s still exists", object, object.GetName())
		}
		return client.IgnoreNotFound(err)
	})
}

// ReleaseAtEnd removes the finalizers of the objects of a kind when the test ends. No controller would do it then, and
// the namespace could not be deleted.
func (e *Env) ReleaseAtEnd(list client.ObjectList) {
	e.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Timeout)
		defer cancel()
		e.Must(e.List(ctx, list, client.InNamespace(e.Namespace)))
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		e.Must(meta.EachListItem(list, func(object runtime.Object) error {
			return client.IgnoreNotFound(e.Patch(ctx, object.(client.Object), patch))
		}))
	})
}
