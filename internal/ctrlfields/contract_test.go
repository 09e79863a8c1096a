// SPDX-License-Identifier: Apache-2.0

package ctrlfields

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/internal/offline"
)

// contract is a field of controller-runtime that this package depends on.
type contract struct {
	of   reflect.Type
	name string
	// want is the type of the field. If it is nil, the type is not exported.
	want reflect.Type
	// loses says what users lose without the field.
	loses string
}

const (
	warnings = "the warnings that a kind is read or tracked and not watched, and the watch of the form that is read"
	setUps   = "converge, plan, graph.Record and wiring tests of set-up functions"
	replicas = "controllers with Config.Shard"
	options  = "the number of workers, the time limits or the flags of a controller in wiring tests and in converge"
	unfilled = "the kinds that a manager waits for when it does not start"
	fencing  = "that a replica which was paused or has released its lease does not write"
	causes   = "the kind in the causes of a reconcile, and the kind that a controller waits for when it does not start"
)

func contracts(t *testing.T) []contract {
	t.Helper()
	bldr, own := reflect.TypeFor[builder.Builder](), reflect.TypeFor[builder.ForInput]()
	owned, watched := reflect.TypeFor[builder.OwnsInput](), reflect.TypeFor[builder.WatchesInput[reconcile.Request]]()
	kind := elem(source.Kind[client.Object](nil, &corev1.Pod{}, &handler.EnqueueRequestForObject{}))
	built := elem(built(t, controller.Options{Reconciler: never}))
	byKind := elem(newCache(t, cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {}}}))
	byNamespace := elem(newCache(t, cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}}}))
	plain := elem(newCache(t, cache.Options{}))
	informers := typeOf(plain, "Informers")
	if informers.Kind() == reflect.Pointer {
		informers = informers.Elem()
	}
	entry := typeOf(informers, "tracker")
	if entry.Kind() == reflect.Struct && entry.Field(0).Type.Kind() == reflect.Map {
		if entry = entry.Field(0).Type.Elem(); entry.Kind() == reflect.Pointer {
			entry = entry.Elem()
		}
	}
	electing := elem(newManager(t))
	fromCluster := elem(newClient(t, client.Options{}))
	object, predicates := reflect.TypeFor[client.Object](), reflect.TypeFor[[]predicate.Predicate]()
	return []contract{
		{bldr, "newController", reflect.TypeFor[NewController](), "all events, metrics and traces, and the console"},
		{bldr, "forInput", own, "the kind of a controller in its events and metrics; " + warnings},
		{own, "object", object, "the kind of a controller in its events and metrics; " + warnings},
		{own, "predicates", predicates, warnings + "; " + replicas},
		{own, "objectProjection", nil, warnings + " of a resource that is watched as metadata"},
		{bldr, "ownsInput", reflect.TypeFor[[]builder.OwnsInput](), warnings},
		{owned, "object", object, warnings},
		{owned, "predicates", predicates, warnings},
		{owned, "objectProjection", nil, warnings + " of children that are watched as metadata"},
		{owned, "matchEveryOwner", reflect.TypeFor[bool](), "events of the form that is read, for further owners"},
		{
			bldr, "watchesInput", reflect.TypeFor[[]builder.WatchesInput[reconcile.Request]](),
			"the watches of each reconciler in the graph; " + warnings,
		},
		{watched, "obj", object, warnings},
		{watched, "handler", reflect.TypeFor[handler.EventHandler](), warnings},
		{watched, "predicates", predicates, warnings},
		{watched, "objectProjection", nil, warnings + " of kinds that are watched as metadata"},
		{bldr, "rawSources", reflect.TypeFor[[]source.Source](), "the watches of each reconciler in the graph; " + warnings},
		{bldr, "globalPredicates", predicates, warnings + "; " + replicas},

		{kind, "Type", object, causes + "; " + warnings},
		{kind, "Cache", reflect.TypeFor[cache.Cache](), causes + "; " + warnings},
		{kind, "Handler", reflect.TypeFor[handler.EventHandler](), "the object and the change in the causes of a reconcile"},
		{kind, "Predicates", predicates, warnings},

		{built, "Do", reflect.TypeFor[reconcile.Reconciler](), setUps},
		{built, "NewQueue", reflect.TypeFor[NewQueue](), setUps},
		{built, "Queue", reflect.TypeFor[priorityqueue.PriorityQueue[reconcile.Request]](), setUps},
		{built, "Name", reflect.TypeFor[string](), "the names of controllers in converge, plan and wiring tests"},
		{built, "MaxConcurrentReconciles", reflect.TypeFor[int](), options},
		{built, "CacheSyncTimeout", reflect.TypeFor[time.Duration](), options},
		{built, "ReconciliationTimeout", reflect.TypeFor[time.Duration](), options},
		{built, "RecoverPanic", reflect.TypeFor[*bool](), options},
		{built, "LeaderElected", reflect.TypeFor[*bool](), options},
		{built, "EnableWarmup", reflect.TypeFor[*bool](), options},
		{
			built, "LogConstructor", reflect.TypeFor[func(*reconcile.Request) logr.Logger](),
			"the kind of the object in the log lines of controllers for several clusters",
		},

		{byKind, "caches", reflect.TypeFor[kindCaches](), unfilled + ", with ByObject in the options of the cache"},
		{byKind, "defaultCache", reflect.TypeFor[cache.Cache](), unfilled + ", with ByObject in the options of the cache"},
		{
			byNamespace, "namespaceToCache", reflect.TypeFor[map[string]cache.Cache](),
			unfilled + ", with namespaces in the options of the cache",
		},
		{
			byNamespace, "clusterCache", reflect.TypeFor[cache.Cache](),
			unfilled + " if they are cluster-scoped, with namespaces in the options of the cache",
		},
		{plain, "Informers", nil, unfilled},
		{informers, "mu", reflect.TypeFor[sync.RWMutex](), unfilled},
		{informers, "started", reflect.TypeFor[bool](), unfilled},
		{informers, "tracker", nil, unfilled},
		{entry, "Informer", reflect.TypeFor[toolscache.SharedIndexInformer](), unfilled},

		{
			fromCluster, "uncachedGVKs", reflect.TypeFor[map[schema.GroupVersionKind]struct{}](),
			"that kinds of DisableFor, which are not read from the cache, get no further watch",
		},
		{
			fromCluster, "cacheUnstructured", reflect.TypeFor[bool](),
			"the watch of unstructured objects that are read from the cache",
		},
		{
			fromCluster, "cache", reflect.TypeFor[client.Reader](),
			"the small index of children by owner; the index needs ten times the memory then",
		},

		{electing, "Mutex", reflect.TypeFor[sync.Mutex](), fencing},
		{electing, "started", reflect.TypeFor[bool](), fencing},
		{electing, "resourceLock", reflect.TypeFor[resourcelock.Interface](), fencing},
		{reflect.TypeFor[wrapper](), "Manager", reflect.TypeFor[manager.Manager](), fencing + ", with a wrapped manager"},
	}
}

// wrapper is a manager as users wrap it.
type wrapper struct{ ctrl.Manager }

// newManager returns a manager with leader election.
func newManager(t *testing.T) manager.Manager {
	t.Helper()
	mgr, err := ctrl.NewManager((&offline.Cluster{}).GetConfig(), ctrl.Options{
		Scheme: clientgoscheme.Scheme, LeaderElection: true, LeaderElectionID: "web", LeaderElectionNamespace: "ops",
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return offline.NewMapper(clientgoscheme.Scheme), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

// elem returns the type that a pointer points to.
func elem(pointer any) reflect.Type { return reflect.TypeOf(pointer).Elem() }

// typeOf returns the type of a field, or an empty struct.
func typeOf(of reflect.Type, name string) reflect.Type {
	if of.Kind() == reflect.Struct {
		if found, ok := of.FieldByName(name); ok {
			return found.Type
		}
	}
	return reflect.TypeFor[struct{}]()
}

func TestFieldsOfControllerRuntime(t *testing.T) {
	for _, c := range contracts(t) {
		if c.of.Kind() != reflect.Struct {
			t.Errorf("field %s: %v is not a struct: users lose %s", c.name, c.of, c.loses)
			continue
		}
		switch found, ok := c.of.FieldByName(c.name); {
		case !ok:
			t.Errorf("field %s of type %v is gone: users lose %s", c.name, c.of, c.loses)
		case c.want != nil && found.Type != c.want:
			t.Errorf("field %s of type %v has type %v, want %v: users lose %s", c.name, c.of, found.Type, c.want, c.loses)
		}
	}
}

// TestContractsAreComplete compares the names that the code of this package reads with the contracts.
func TestContractsAreComplete(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		imports := map[ast.Node]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ImportSpec); ok {
				imports[spec.Path] = true
			}
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING || imports[n] {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			if token.IsIdentifier(text) {
				read[text] = true
			}
			return true
		})
	}
	listed := map[string]bool{}
	for _, c := range contracts(t) {
		listed[c.name] = true
	}
	want, got := slices.Sorted(maps.Keys(read)), slices.Sorted(maps.Keys(listed))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields with a contract (-want +got):\n%s", diff)
	}
}
