// SPDX-License-Identifier: Apache-2.0

package shards_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"trueup.dev/internal/testkit/heap"
)

// Variables that make the test binary run as a replica: its name, the namespace, the path of the kubeconfig, the URL by
// which the replica reaches the API server, and how long its Lease lasts.
const (
	replicaVariable    = "SHARDS_TEST_REPLICA"
	namespaceVariable  = "SHARDS_TEST_NAMESPACE"
	kubeconfigVariable = "SHARDS_TEST_KUBECONFIG"
	serverVariable     = "SHARDS_TEST_SERVER"
	leaseVariable      = "SHARDS_TEST_LEASE"
)

// agentPrefix begins the user agent of a replica. The name of the replica follows.
const agentPrefix = "replica-"

// runReplica runs the controller of the tests until the process gets a signal. For each line of the standard input, it
// prints its cost.
func runReplica(name string) error {
	log.SetLogger(logr.Discard())
	ctx, namespace := ctrl.SetupSignalHandler(), os.Getenv(namespaceVariable)
	config, err := clientcmd.BuildConfigFromFlags(os.Getenv(serverVariable), os.Getenv(kubeconfigVariable))
	if err != nil {
		return err
	}
	config.QPS, config.UserAgent = -1, agentPrefix+name
	received := &meter{}
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return &metered{rt, received} })
	shard, options, err := newShard(namespace, name)
	if err != nil {
		return err
	}
	lasts, err := time.ParseDuration(os.Getenv(leaseVariable))
	if err != nil {
		return err
	}
	setLease(&options, lasts)
	options.Metrics.BindAddress = "0"
	options.Cache.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	if options, err = shard.ManagerOptions(config, options); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	if err := setUpTree(ctx, mgr, shard); err != nil {
		return err
	}
	go received.report(os.Stdin, os.Stdout)
	return mgr.Start(ctx)
}

// cost is what a replica needs.
type cost struct {
	// Heap are the bytes of the heap in use.
	Heap int64
	// Watched and Listed are the bytes that the replica has received as responses to watches and to other reads.
	Watched, Listed int64
}

// meter counts the bytes that a replica receives.
type meter struct{ watched, listed atomic.Int64 }

// report prints the cost of this process for each line that it reads.
func (m *meter) report(requests io.Reader, to io.Writer) {
	encoder := json.NewEncoder(to)
	for lines := bufio.NewScanner(requests); lines.Scan(); {
		_ = encoder.Encode(cost{Heap: heap.InUse(), Watched: m.watched.Load(), Listed: m.listed.Load()})
	}
}

// metered is a transport whose reads are counted.
type metered struct {
	http.RoundTripper
	meter *meter
}

func (m *metered) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := m.RoundTripper.RoundTrip(req)
	if err != nil || req.Method != http.MethodGet {
		return response, err
	}
	counter := &m.meter.listed
	if req.URL.Query().Get("watch") != "" {
		counter = &m.meter.watched
	}
	response.Body = &counted{response.Body, counter}
	return response, nil
}

// counted is a body whose bytes are counted when they are read.
type counted struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}
