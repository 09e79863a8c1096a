// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"io"
	"reflect"
	"strconv"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	clientrecord "k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// scheduleManager implements only the part of a manager that the set-up of a controller needs. It starts nothing: the
// schedule does the work of a controller.
type scheduleManager struct {
	manager.Manager
	world *scheduleWorld
}

func (m scheduleManager) GetCache() cache.Cache       { return scheduleCache{world: m.world} }
func (m scheduleManager) GetClient() client.Client    { return scheduleClient{world: m.world} }
func (m scheduleManager) GetAPIReader() client.Reader { return scheduleReader{world: m.world} }
func (m scheduleManager) GetScheme() *runtime.Scheme  { return scheduleScheme }
func (m scheduleManager) GetConfig() *rest.Config {
	return &rest.Config{Host: "http://schedule.invalid"}
}
func (m scheduleManager) GetLogger() logr.Logger               { return logr.Discard() }
func (m scheduleManager) GetFieldIndexer() client.FieldIndexer { return nil }
func (m scheduleManager) Add(manager.Runnable) error           { return nil }

func (m scheduleManager) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: new(true)}
}

func (m scheduleManager) GetEventRecorderFor(string) clientrecord.EventRecorder { return noEvents{} }
func (m scheduleManager) GetEventRecorder(string) recorder.EventRecorder        { return nil }

type noEvents struct{ clientrecord.EventRecorder }

func (noEvents) Eventf(runtime.Object, string, string, string, ...any) {}

// scheduleCache reports the resource version of the schedule's cache.
type scheduleCache struct {
	cache.Cache
	world *scheduleWorld
}

func (c scheduleCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return scheduleInformer{world: c.world}, nil
}

type scheduleInformer struct {
	cache.Informer
	world *scheduleWorld
}

func (i scheduleInformer) GetStore() toolscache.Store {
	return &toolscache.FakeCustomStore{LastStoreSyncResourceVersionFunc: func() string {
		return strconv.Itoa(firstVersion + i.world.process.position)
	}}
}

// scheduleReader reads from the server.
type scheduleReader struct {
	client.Reader
	world *scheduleWorld
}

func (r scheduleReader) Get(
	_ context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	r.world.interrupt("a read from the server of", key.Name)
	if err := r.world.fault("read"); err != nil {
		return err
	}
	return r.world.read(r.world.server.objects[key.Name], key, obj, opts)
}

// read answers a read. A read without a copy comes from the root: then read records which object the request is about.
func (w *scheduleWorld) read(found subject, key client.ObjectKey, obj client.Object, opts []client.GetOption) error {
	options := (&client.GetOptions{}).ApplyOptions(opts)
	shared := options.UnsafeDisableDeepCopy != nil && *options.UnsafeDisableDeepCopy
	if shared {
		w.process.found[key.Name] = found
	}
	if found == nil {
		return apierrs.NewNotFound(scheduleResource, key.Name)
	}
	copyInto(found, obj, !shared)
	if shared {
		w.interrupt("a request that has just read", key.Name)
	}
	return nil
}

func copyInto(found subject, obj client.Object, deep bool) {
	if deep {
		found = copyOf(found)
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(found).Elem())
}

// scheduleClient reads from the cache and writes to the server.
type scheduleClient struct {
	client.Client
	world *scheduleWorld
}

func (c scheduleClient) Get(
	_ context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	return c.world.read(c.world.process.cached[key.Name], key, obj, opts)
}

func (c scheduleClient) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return c.world.patch(obj, patch, false)
}

func (c scheduleClient) SubResource(string) client.SubResourceClient {
	return scheduleStatus{world: c.world}
}
func (c scheduleClient) Status() client.SubResourceWriter { return scheduleStatus{world: c.world} }
func (c scheduleClient) Scheme() *runtime.Scheme          { return scheduleScheme }
func (c scheduleClient) RESTMapper() meta.RESTMapper      { return nil }

func (c scheduleClient) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	if _, ok := obj.(*marked); ok {
		return scheduleGroup.WithKind("Marked"), nil
	}
	return scheduleGroup.WithKind("Bare"), nil
}

type scheduleStatus struct {
	client.SubResourceClient
	world *scheduleWorld
}

func (s scheduleStatus) Patch(
	_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption,
) error {
	return s.world.patch(obj, patch, true)
}

// patch is a write of the controller. It may fail before and after it takes effect, and other events may happen during
// it.
func (w *scheduleWorld) patch(obj client.Object, patch client.Patch, status bool) error {
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	w.count("writes")
	w.interrupt("a patch that is not made yet, of", obj.GetName())
	if err := w.fault("write"); err != nil {
		return err
	}
	before := w.server.objects[obj.GetName()]
	written, err := w.server.patch(obj.GetName(), data, status)
	w.tracef("  patch %s %s: %v", obj.GetName(), data, err)
	if err != nil {
		return err
	}
	w.checkCleared(before, written)
	w.interrupt("a patch that is made, of", obj.GetName())
	if w.chance(24) {
		w.count("lost responses")
		w.tracef("  the response is lost")
		return io.ErrUnexpectedEOF
	}
	w.process.wrote(written, status)
	copyInto(written, obj, true)
	return nil
}

// fault returns the injected error of an API call before it takes effect, usually nil.
func (w *scheduleWorld) fault(call string) error {
	if !w.chance(16) {
		return nil
	}
	w.count("failed calls")
	w.tracef("  a %s fails", call)
	if w.chance(128) {
		return apierrs.NewInternalError(io.ErrClosedPipe)
	}
	return apierrs.NewTooManyRequests("slow down", 1)
}
