// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clientrecord "k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlrecorder "sigs.k8s.io/controller-runtime/pkg/recorder"

	"trueup.dev/testing/internal/fakeapi"
)

// recordingManager is a manager that needs no API server. It keeps the controllers that are added to it.
type recordingManager struct {
	manager.Manager

	own *recordingCluster

	mu          sync.Mutex
	controllers []*recordedController
	others      []*recordingCluster
	problems    []error
}

func newRecordingManager(scheme *runtime.Scheme, given []client.Object) (*recordingManager, error) {
	own, err := newRecordingCluster("", scheme, given)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(nowhere(), ctrl.Options{
		Scheme: scheme, MapperProvider: own.provideMapper, NewClient: own.provideClient, NewCache: own.provideCache,
		Logger: silent(), Metrics: server.Options{BindAddress: "0"},
		// Names are unique in a process, and others have been here before.
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	return &recordingManager{Manager: mgr, own: own}, err
}

// Add keeps controllers. Whatever else is added is not started.
func (m *recordingManager) Add(runnable manager.Runnable) error {
	if err := m.Manager.Add(runnable); err != nil {
		return err
	}
	controller, err := recordController(runnable)
	m.mu.Lock()
	defer m.mu.Unlock()
	if controller != nil {
		m.controllers = append(m.controllers, controller)
	}
	if err != nil {
		m.problems = append(m.problems, err)
	}
	return nil
}

func (m *recordingManager) GetAPIReader() client.Reader { return m.own.GetAPIReader() }

func (m *recordingManager) GetEventRecorderFor(name string) clientrecord.EventRecorder {
	return m.own.GetEventRecorderFor(name)
}

func (m *recordingManager) GetEventRecorder(name string) ctrlrecorder.EventRecorder {
	return m.own.GetEventRecorder(name)
}

func (m *recordingManager) clusters() []*recordingCluster {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]*recordingCluster{m.own}, m.others...)
}

// OtherCluster returns a cluster other than that of the manager, which has to be that of [RecordWiring]. What is
// watched and indexed there is recorded with the name of the cluster, which is required. The same name is the same
// cluster.
func OtherCluster(t testing.TB, mgr ctrl.Manager, name string) ctrlcluster.Cluster {
	t.Helper()
	other, err := otherCluster(mgr, name)
	if err != nil {
		t.Fatal(err)
	}
	return other
}

func otherCluster(mgr ctrl.Manager, name string) (*recordingCluster, error) {
	m, ok := mgr.(*recordingManager)
	if !ok {
		return nil, fmt.Errorf("cluster %q: the manager must be the one of RecordWiring, not a %T", name, mgr)
	}
	if name == "" {
		return nil, errors.New("cluster: a name is required, the one without is that of the manager")
	}
	for _, known := range m.clusters() {
		if known.cache.cluster == name {
			return known, nil
		}
	}
	other, err := newRecordingCluster(name, m.GetScheme(), nil)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.others = append(m.others, other)
	return other, nil
}

// recordingCluster is a cluster whose objects are in memory, and whose cache records.
type recordingCluster struct {
	ctrlcluster.Cluster

	mapper meta.RESTMapper
	api    client.Client
	cache  *recordingCache
	// events are recorded for nobody. The recorders of a manager that is never started would wait for it.
	events *eventLog
}

func newRecordingCluster(name string, scheme *runtime.Scheme, given []client.Object) (*recordingCluster, error) {
	c := &recordingCluster{
		mapper: anyKind{testrestmapper.TestOnlyStaticRESTMapper(scheme)}, events: &eventLog{scheme: scheme},
	}
	api, _, err := fakeapi.New(fakeapi.Options{Scheme: scheme, Given: given, Mapper: c.mapper})
	if err != nil {
		return nil, err
	}
	c.api, c.cache = api, &recordingCache{cluster: name, scheme: scheme, api: api}
	c.Cluster, err = ctrlcluster.New(nowhere(), func(o *ctrlcluster.Options) {
		o.Scheme, o.MapperProvider, o.NewClient, o.NewCache, o.Logger =
			scheme, c.provideMapper, c.provideClient, c.provideCache, silent()
	})
	return c, err
}

func (c *recordingCluster) provideMapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return c.mapper, nil
}

func (c *recordingCluster) provideClient(*rest.Config, client.Options) (client.Client, error) {
	return &cachedClient{Client: c.api, cache: c.cache}, nil
}

func (c *recordingCluster) provideCache(*rest.Config, cache.Options) (cache.Cache, error) {
	return c.cache, nil
}

func (c *recordingCluster) GetAPIReader() client.Reader { return c.api }

func (c *recordingCluster) GetEventRecorderFor(string) clientrecord.EventRecorder {
	return recorder{c.events}
}

func (c *recordingCluster) GetEventRecorder(string) ctrlrecorder.EventRecorder {
	return eventRecorder{c.events}
}

// anyKind maps all kinds. Those that the scheme does not know have objects in namespaces.
type anyKind struct{ meta.RESTMapper }

func (m anyKind) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if !meta.IsNoMatchError(err) {
		return mapping, err
	}
	version := "v1"
	if len(versions) > 0 {
		version = versions[0]
	}
	gvk := kind.WithVersion(version)
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	return &meta.RESTMapping{Resource: resource, GroupVersionKind: gvk, Scope: meta.RESTScopeNamespace}, nil
}

// nowhere is where the API server of a recording manager is.
func nowhere() *rest.Config {
	return &rest.Config{Host: "http://nowhere.invalid", Transport: noServer{}}
}

type noServer struct{}

func (noServer) RoundTrip(request *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("%s %s: there is no API server when wiring is recorded", request.Method, request.URL.Path)
}

// silent is a logger, unlike one without a sink, which stands for the default one.
func silent() logr.Logger { return logr.New(log.NullLogSink{}) }
