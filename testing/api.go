// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"slices"
	"sync"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/testing/internal/cluster"
	"trueup.dev/testing/internal/fakeapi"
)

// api stores the objects of a config: in memory, or in a cluster.
type api struct {
	// client executes the calls of the recording client.
	client client.Client
	// reader is the APIReader of the config.
	reader client.Reader
	// discovery is the discovery client of the config. Nil for one that serves the GivenAPIResources.
	discovery discovery.DiscoveryInterface
	// addGiven adds objects as if they had been given from the start.
	addGiven func(obj client.Object) error
	// normalize returns the objects to compare: without the fields that only a server adds. Nil in memory.
	normalize func(expected, observed client.Object) (client.Object, client.Object)
	// changedNothing reports whether a server found nothing to change in an update. Nil in memory.
	changedNothing func(update client.Object) bool
	// notes returns what helps to understand a failed case, a line each. Nil in memory.
	notes func() []string
	// close removes the objects of the case. Nil in memory.
	close func() error
}

// newFakeAPI creates the given objects of a config in memory. Without Realistic, Client and APIReader have an API each.
func newFakeAPI(c *ExpectConfig) (*api, error) {
	options := fakeapi.Options{
		Scheme:             c.Scheme,
		Given:              c.given.objects,
		StatusSubresources: c.given.statusSubResources,
		Build:              c.WithClientBuilder,
		Mapper:             fakeapi.NewMapper(c.GivenAPIResources),
		Realistic:          c.Realistic,
	}
	var unseen []client.Object
	if c.Realistic {
		unseen = c.except(c.given.apiObjects, c.given.objects)
		options.Given = slices.Concat(options.Given, unseen)
	}
	fake, store, err := fakeapi.New(options)
	if err != nil {
		return nil, err
	}
	api := &api{client: fake, reader: fake, addGiven: func(obj client.Object) error {
		obj, err := givenObject(obj, c.Scheme)
		if err != nil {
			return err
		}
		return store.Add(obj)
	}}
	if c.Realistic {
		if api.client, err = fakeapi.Hide(c.Scheme, fake, unseen); err != nil {
			return nil, err
		}
		return api, nil
	}
	// created when needed, because few reconcilers use APIReader
	options.Given = c.given.apiObjects
	api.reader = lazyReader{open: sync.OnceValues(func() (client.Reader, error) {
		fake, _, err := fakeapi.New(options)
		return fake, err
	})}
	return api, nil
}

// except returns the objects that are not among others.
func (c *ExpectConfig) except(objs, others []client.Object) []client.Object {
	known := map[identity]bool{}
	for _, other := range others {
		known[c.identity(other)] = true
	}
	return slices.DeleteFunc(slices.Clone(objs), func(obj client.Object) bool { return known[c.identity(obj)] })
}

// lazyReader opens a reader when it is first used.
type lazyReader struct {
	open func() (client.Reader, error)
}

func (r lazyReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	reader, err := r.open()
	if err != nil {
		return err
	}
	return reader.Get(ctx, key, obj, opts...)
}

func (r lazyReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	reader, err := r.open()
	if err != nil {
		return err
	}
	return reader.List(ctx, list, opts...)
}

// OnCluster runs cases against the API of a real cluster, preferably a disposable one from package sandbox. It finds
// cases that only pass because the API in memory is lenient: that API accepts names, fields and updates that a server
// refuses, and has no defaults.
//
//	suite.Run(t, scheme, factory, rtesting.OnCluster(sandbox.ForTest(t, sandbox.TestOptions{CRDs: crds}).RESTConfig()))
//
// The cases need no change. A case creates its given objects with the permissions of the config, and the namespaces
// that it needs and that do not exist. Calls are recorded, and reactors called, before they reach the API. After the
// case, everything that it was given or created is removed, despite finalizers, before the next case begins. Only
// namespaces are kept, empty, with the label trueup.dev/made-by. The cases on one cluster run one after another, even
// in parallel tests, and in packages that one user tests at the same time on one machine. Two machines must not run
// cases on one cluster at the same time.
//
// Reconcilers and comparisons see the objects as the case describes them:
//
//   - Objects have the UID, creation and deletion timestamps, generation and resource version that the API in memory
//     assigns. They are translated in both directions, also in owner references, preconditions and patches.
//     Generations increase when the server increases them.
//   - Owner references to objects that the case does not have are not sent to the cluster, whose garbage collector
//     would delete the objects with these references. The case sees them.
//   - The case sees the objects that it was given and the results of its own calls. Other objects, such as the default
//     service account of each namespace, and writes by controllers of the cluster are hidden. The case cannot write to
//     other objects.
//   - The reconciler sees the fields that the server adds, mostly defaults. Fields that the reconciler sends back and
//     that the case does not expect are not compared. They are listed when a case fails. Updates that change nothing
//     need not be expected: most of them only leave out defaults.
//   - Objects only in APIGivenObjects are visible to APIReader, but not to Client. Those in GivenObjects are visible to
//     both.
//   - Writes to all subresources are executed.
//
// A case is skipped, with the reason, if a cluster cannot represent it: objects differ between GivenObjects and
// APIGivenObjects, like in a stale cache; given objects have no name or no namespace; the cluster does not serve the
// GivenAPIResources as given; a given namespace already exists with other labels; WithClientBuilder sets more than
// indexes, by which Client then lists as from a cache; AdditionalConfigs have no [OnAdditionalCluster].
//
// A case fails if a given object is refused, already exists and was not created by a case, or is of a kind that is not
// served because its CustomResourceDefinition is not installed.
func OnCluster(config *rest.Config) RunOption {
	return OnAdditionalCluster(cluster.DefaultName, config)
}

// OnAdditionalCluster sets the cluster for the entry with this name in AdditionalConfigs. It requires [OnCluster].
// Cases without such an entry ignore it.
func OnAdditionalCluster(name string, config *rest.Config) RunOption {
	on := cluster.New(config)
	return runOption(func(options *runOptions) {
		if options.clusters == nil {
			options.clusters = map[string]*cluster.Cluster{}
		}
		options.clusters[name] = on
	})
}

// newClusterAPI creates the given objects of a config in the cluster that it works with.
func newClusterAPI(turn *cluster.Turn, c *ExpectConfig) (*api, error) {
	on := cluster.Case{
		Name: c.Name, Scheme: c.Scheme, Realistic: c.Realistic,
		GivenObjects: c.given.objects, APIGivenObjects: c.given.apiObjects,
		GivenAPIResources: c.GivenAPIResources, WithClientBuilder: c.WithClientBuilder,
	}
	if len(c.GivenAPIResources) > 0 {
		on.RESTMapper = fakeapi.NewMapper(c.GivenAPIResources)
	}
	for _, obj := range c.ExpectCreates {
		if obj, err := unwrap(obj); err == nil {
			kind := c.kindOf(obj)
			on.Created = append(on.Created, cluster.Created{
				Group: kind.Group, Kind: kind.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(),
			})
		}
	}
	for _, ref := range c.ExpectApplies {
		on.Created = append(on.Created, cluster.Created{
			Group: ref.Group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name,
		})
	}
	opened, err := turn.Open(on)
	if err != nil {
		return nil, err
	}
	result := &api{
		client: opened.Client(), reader: opened.Reader(),
		addGiven: func(obj client.Object) error {
			obj, err := givenObject(obj, c.Scheme)
			if err != nil {
				return err
			}
			return opened.AddGiven(obj)
		},
		normalize: opened.Normalize, changedNothing: opened.ChangedNothing, notes: opened.Notes, close: opened.Close,
	}
	if len(c.GivenAPIResources) == 0 {
		result.discovery = opened.Discovery()
	}
	return result, nil
}

// withoutNoOps returns the updates without those that are not expected and in which a server found nothing to change.
// Cases do not expect these, because in memory every update changes the resource version, and there are no defaults to
// leave out.
func (c *ExpectConfig) withoutNoOps(updates []objectAction) []objectAction {
	api := c.open().api
	if api == nil || api.changedNothing == nil {
		return updates
	}
	kept := slices.Clone(updates)
	for i := 0; i < len(kept) && len(kept) > len(c.ExpectUpdates); {
		if update := kept[i].GetObject().(client.Object); api.changedNothing(update) {
			kept = slices.Delete(kept, i, i+1)
			continue
		}
		i++
	}
	return kept
}
