// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// defaultConfigName is the name of the config of a case that is not an additional one.
	defaultConfigName = "default"
	// clusterManager is the field manager of given objects.
	clusterManager = "trueup-testing"
)

// OnCluster runs cases against the API of a real cluster, best a disposable one as package sandbox starts it, and so
// finds out where the API in memory is too good to be true: it takes names, fields and updates that a server refuses,
// and knows no defaults.
//
//	suite.Run(t, scheme, factory, rtesting.OnCluster(sandbox.ForTest(t, sandbox.TestOptions{CRDs: crds}).RESTConfig()))
//
// The cases need not be changed. A case creates its given objects with the rights of the config, and namespaces they
// need and that are missing. Calls are recorded, and reactors called, in front of the API. After the case everything it
// was given or has created is removed, finalizers or not, and has gone when the next case begins. Only namespaces stay,
// empty, with the label trueup.dev/made-by. Cases on one cluster run one after another in a test binary, even in
// parallel tests. Binaries that share a cluster must not run in parallel: go test -p 1.
//
// What a reconciler sees and what is compared is in the terms of the case:
//
//   - Objects have the uid, creation and deletion timestamps, generation and resource version that the API in memory
//     gives them. They are translated in both directions, in owner references, preconditions and patches too.
//     Generations move when the server moves them.
//   - Owner references to objects that the case does not have are kept away from the cluster, whose garbage collector
//     deletes objects that they are on. The case sees them.
//   - The case sees what it was given and what its own calls have made of it. Objects of others, such as the default
//     service account of each namespace, and what controllers of the cluster do while a case runs, are hidden. The case
//     cannot write to objects of others.
//   - Fields the server adds, mostly defaults, are there for the reconciler. Where the reconciler sends them back and
//     the case does not expect them, they are left out of the comparison. When a case fails, they are listed. Updates
//     that change nothing need not be expected: mostly they leave defaults out.
//   - An object in APIGivenObjects only is visible to APIReader, but not to Client. Those in GivenObjects are visible
//     to both.
//   - Writes to all sub resources are executed.
//
// A case is skipped, and says why, when it cannot be told to a cluster: objects in GivenObjects and APIGivenObjects
// that contradict each other, as with a stale cache; given objects without a name or a namespace; GivenAPIResources
// that the cluster does not serve in this way; a given namespace that is there already, but with other labels; a
// WithClientBuilder that sets more than indexes, by which Client then lists as with a cache; AdditionalConfigs, unless
// [OnAdditionalCluster] says where they are.
//
// A case fails when a given object is refused, exists already and was not made by a case, or is of a kind that is not
// served, because its CustomResourceDefinition was not installed.
func OnCluster(config *rest.Config) RunOption {
	return OnAdditionalCluster(defaultConfigName, config)
}

// OnAdditionalCluster says which cluster the entry in AdditionalConfigs with this name works with. It needs [OnCluster]
// beside it. Cases without such an entry ignore it.
func OnAdditionalCluster(name string, config *rest.Config) RunOption {
	on := &cluster{restConfig: config}
	return runOption(func(options *runOptions) {
		if options.clusters == nil {
			options.clusters = map[string]*cluster{}
		}
		options.clusters[name] = on
	})
}

// cluster is a cluster that cases run on.
type cluster struct {
	restConfig *rest.Config

	once      sync.Once
	err       error
	http      *http.Client
	mapper    meta.RESTMapper
	discovery discovery.DiscoveryInterface
	// client is for what cases do not see.
	client client.Client
	host   *clusterHost
}

// connect makes the cluster ready for use, without a request.
func (c *cluster) connect() error {
	c.once.Do(func() { c.err = c.doConnect() })
	return c.err
}

func (c *cluster) doConnect() error {
	if c.restConfig == nil {
		return errors.New("OnCluster: the config must not be nil")
	}
	c.restConfig = rest.CopyConfig(c.restConfig)
	c.restConfig.UserAgent = clusterManager
	c.restConfig.WarningHandler = rest.NoWarnings{}
	c.restConfig.QPS = -1 // no limit
	var err error
	if c.http, err = rest.HTTPClientFor(c.restConfig); err != nil {
		return fmt.Errorf("OnCluster: %w", err)
	}
	if c.mapper, err = apiutil.NewDynamicRESTMapper(c.restConfig, c.http); err != nil {
		return fmt.Errorf("OnCluster: %w", err)
	}
	if c.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(c.restConfig, c.http); err != nil {
		return fmt.Errorf("OnCluster: %w", err)
	}
	if c.client, err = client.New(c.restConfig, client.Options{HTTPClient: c.http, Mapper: c.mapper}); err != nil {
		return fmt.Errorf("OnCluster: %w", err)
	}
	c.host = hostOf(c.restConfig.Host)
	return nil
}

// notOnCluster is why a case cannot run on a cluster at all, which is no failure.
type notOnCluster struct{ reason string }

func (e *notOnCluster) Error() string { return e.reason }

func notOnClusterf(format string, args ...any) error {
	return &notOnCluster{reason: fmt.Sprintf(format, args...)}
}
