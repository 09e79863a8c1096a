// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"trueup.dev/internal/apipath"
)

const (
	// usageFile is the file in the directory of a shared control plane with the tests that use it.
	usageFile = "tests"
	// maxNamedTests limits how many tests a warning names.
	maxNamedTests = 3
)

// The events of a test.
const (
	testBegins = "begin"
	testEnds   = "end"
	watchesAll = "watch" // resources of all namespaces, or cluster-scoped ones
)

// usageLine is an event of a test, a line of JSON in the usage file.
type usageLine struct {
	Time      time.Time `json:"time"`
	Event     string    `json:"event"`
	Namespace string    `json:"namespace"`        // identifies the test
	Test      string    `json:"test,omitempty"`   // with testBegins
	Client    string    `json:"client,omitempty"` // with testBegins
	Path      string    `json:"path,omitempty"`   // with watchesAll
}

// usage records how a test uses a shared control plane, for the warnings of this test and of others. A nil usage
// records nothing.
type usage struct {
	file      *os.File
	namespace string

	mu    sync.Mutex
	paths map[string]bool // watched by this test
}

// newUsage records the begin of a test. It returns nil if only this process uses the control plane.
func newUsage(s *Sandbox, test, namespace string) *usage {
	l, ok := s.server.(*lease)
	if !ok {
		return nil
	}
	path := filepath.Join(filepath.Dir(l.log.Name()), usageFile)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil // the control plane is ending, which the test notices by itself
	}
	u := &usage{file: file, namespace: namespace, paths: map[string]bool{}}
	u.record(usageLine{Event: testBegins, Test: test, Client: clientName()})
	return u
}

// record appends a line. A single short write is not mixed with those of other processes.
func (u *usage) record(line usageLine) {
	line.Time, line.Namespace = time.Now(), u.namespace
	if encoded, err := json.Marshal(line); err == nil {
		_, _ = u.file.Write(append(encoded, '\n'))
	}
}

// observe makes clients with the configuration record which resources they watch in all namespaces.
func (u *usage) observe(config *rest.Config) *rest.Config {
	if u != nil {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &observedTransport{next: next, usage: u} })
	}
	return config
}

type observedTransport struct {
	next  http.RoundTripper
	usage *usage
}

func (o *observedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusOK {
		if path := watched(r); path != "" {
			o.usage.watches(path)
		}
	}
	return response, err
}

// WrappedRoundTripper returns the transport below, which client-go asks for its TLS configuration.
func (o *observedTransport) WrappedRoundTripper() http.RoundTripper { return o.next }

// watched returns the path of the resource whose objects a request watches, without a namespace, or "". A test that
// only lists them does not act on what others change.
func watched(r *http.Request) string {
	request, ok := apipath.Parse(r)
	if !ok || request.Verb != "watch" || request.Namespace != "" ||
		strings.Contains(r.URL.Query().Get("fieldSelector"), "metadata.namespace=") {
		return ""
	}
	return strings.Trim(r.URL.Path, "/")
}

func (u *usage) watches(path string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.paths[path] {
		u.paths[path] = true
		u.record(usageLine{Event: watchesAll, Path: path})
	}
}

// end records the end of the test. If its log is shown, end warns about tests that may have acted on the objects of
// each other: those that ran at the same time, if one of them has watched all namespaces.
func (u *usage) end(t testing.TB, s *Sandbox) {
	if u == nil {
		return
	}
	u.record(usageLine{Event: testEnds})
	if s.Err() == nil && (t.Failed() || testing.Verbose()) {
		config := s.RESTConfig()
		config.Timeout = namespaceTimeout
		if scopes, err := discovery.NewDiscoveryClientForConfig(config); err == nil {
			for _, warning := range u.warnings(scopes, t.Failed()) {
				t.Log(warning)
			}
		}
	}
	_ = u.file.Close()
}

const restrict = "A manager acts on all objects that it watches: restrict its cache to the namespace of the test " +
	"(DefaultNamespaces in cache.Options). TestOptions.Private protects the tests of other packages."

// warnings returns what to say about this test and, if it has failed, about others.
func (u *usage) warnings(scopes discovery.ServerResourcesInterface, failed bool) []string {
	tests := u.tests()
	i := slices.IndexFunc(tests, func(other usedBy) bool { return other.namespace == u.namespace })
	if i < 0 {
		return nil
	}
	me := tests[i]
	tests = slices.Delete(tests, i, i+1)
	namespaced := namespacedResources{scopes: scopes, known: map[string]map[string]bool{}}
	var warnings []string
	affected := slices.DeleteFunc(slices.Clone(tests), func(other usedBy) bool { return !me.affects(other) })
	if resources := namespaced.among(me.paths); len(resources) > 0 && len(affected) > 0 {
		warnings = append(warnings, fmt.Sprintf(
			"warning: this test watches %s in all namespaces, and shares the control plane with %s. %s",
			strings.Join(resources, ", "), names(affected), restrict,
		))
	}
	for _, other := range tests {
		if !failed || !other.affects(me) {
			continue
		}
		if resources := namespaced.among(other.paths); len(resources) > 0 {
			warnings = append(warnings, fmt.Sprintf(
				"warning: while this test ran, another one watched %s in all namespaces of the control plane that "+
					"both share: %s. %s", strings.Join(resources, ", "), other.name, restrict,
			))
		}
	}
	return warnings
}

// names returns the names of the first tests.
func names(tests []usedBy) string {
	var b strings.Builder
	for i, test := range tests[:min(len(tests), maxNamedTests)] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(test.name)
	}
	if more := len(tests) - maxNamedTests; more > 0 {
		_, _ = fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

// usedBy is a test that uses or has used the control plane.
type usedBy struct {
	namespace string
	name      string
	begin     time.Time
	end       time.Time // zero while it runs, or if its process was killed
	paths     []string
	watches   time.Time // since when
}

// affects reports whether the test has watched all namespaces while the other ran. A watch is taken to last until the
// end of its test.
func (b *usedBy) affects(other usedBy) bool {
	return len(b.paths) > 0 && (other.end.IsZero() || b.watches.Before(other.end)) &&
		(b.end.IsZero() || other.begin.Before(b.end))
}

// tests returns all tests that have used the control plane.
func (u *usage) tests() []usedBy {
	info, err := u.file.Stat()
	if err != nil {
		return nil
	}
	var tests []usedBy
	index := map[string]int{}
	for lines := json.NewDecoder(io.NewSectionReader(u.file, 0, info.Size())); ; {
		var line usageLine
		if lines.Decode(&line) != nil {
			return tests
		}
		i, ok := index[line.Namespace]
		switch {
		case line.Event == testBegins:
			index[line.Namespace] = len(tests)
			tests = append(tests, usedBy{
				namespace: line.Namespace, name: line.Test + " of " + line.Client, begin: line.Time,
			})
		case !ok:
		case line.Event == testEnds:
			tests[i].end = line.Time
		case line.Event == watchesAll:
			if len(tests[i].paths) == 0 {
				tests[i].watches = line.Time
			}
			tests[i].paths = append(tests[i].paths, line.Path)
		}
	}
}

// namespacedResources knows which resources are namespaced.
type namespacedResources struct {
	scopes discovery.ServerResourcesInterface
	known  map[string]map[string]bool // by group version and resource
}

// among returns the namespaced resources of paths, such as deployments.apps, sorted and each once.
func (n *namespacedResources) among(paths []string) []string {
	var found []string
	for _, path := range paths {
		parts := strings.Split(path, "/")
		last := len(parts) - 1
		version := schema.GroupVersion{Version: parts[last-1]}
		if last == 3 {
			version.Group = parts[1]
		}
		resources, ok := n.known[version.String()]
		if !ok {
			resources = map[string]bool{}
			if list, err := n.scopes.ServerResourcesForGroupVersion(version.String()); err == nil {
				for _, r := range list.APIResources {
					resources[r.Name] = r.Namespaced
				}
			}
			n.known[version.String()] = resources
		}
		if resources[parts[last]] {
			found = append(found, join(parts[last], ".", version.Group))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
