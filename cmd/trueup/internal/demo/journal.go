// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/internal/serving/apipath"
	"trueup.dev/shards"
)

// write is a write of a Website, or of a child of a Website, that the API has accepted.
type write struct {
	by       string // the name of the replica
	what     string // verb, resource and name
	website  string
	ofStatus bool
	version  uint64 // 0 if the API has returned none
}

// assignment is the replica that a Website is assigned to at a version. It is "" if there is none.
type assignment struct {
	version uint64
	to      string
}

// journal records which replica writes what, and which Website is assigned to which replica. The API server numbers the
// versions of all objects in one order.
type journal struct {
	mu          sync.Mutex
	writes      []write
	assignments map[string][]assignment // by the name of the Website, of each of its versions
}

// follow records the assignments of all Websites that are created later.
func (j *journal) follow(ctx context.Context, objects cache.Cache) error {
	informer, err := objects.GetInformer(ctx, &websitev1.Website{})
	if err != nil {
		return err
	}
	note := func(obj any) {
		site := obj.(*websitev1.Website)
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.assignments == nil {
			j.assignments = map[string][]assignment{}
		}
		seen := assignment{versionOf(site), site.Labels[shards.ShardLabel(ring)]}
		j.assignments[site.Name] = append(j.assignments[site.Name], seen)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: note, UpdateFunc: func(_, obj any) { note(obj) },
	})
	return err
}

// hasSeen reports whether the journal has this version of a Website.
func (j *journal) hasSeen(site *websitev1.Website) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	versions := j.assignments[site.Name]
	return len(versions) > 0 && versions[len(versions)-1].version >= versionOf(site)
}

// shares returns the sorted names of the Websites that are assigned to each replica.
func (j *journal) shares() map[string][]string {
	j.mu.Lock()
	defer j.mu.Unlock()
	owned := map[string][]string{}
	for _, site := range slices.Sorted(maps.Keys(j.assignments)) {
		to := j.assigned(site, math.MaxUint64)
		owned[to] = append(owned[to], site)
	}
	return owned
}

// versionOf returns 0 for an object without a version.
func versionOf(obj metav1.Object) uint64 {
	version, _ := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	return version
}

// serve gives a replica access to the API, and records what it writes. Only clients with the token are served.
func (j *journal) serve(config *rest.Config, replica string) (address, token string, stop func(), err error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return "", "", nil, err
	}
	api, err := url.Parse(config.Host)
	if err != nil {
		return "", "", nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", nil, err
	}
	token = rand.Text()
	quiet := log.New(io.Discard, "", 0)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(api)
			r.Out.Header.Del("Authorization")   // the transport adds its own
			r.Out.Header.Del("Accept-Encoding") // the transport asks for it, and decompresses the answer
			if r.In.Method != http.MethodGet {
				// Wait for the answer also if the replica is killed: the API may accept the write.
				r.Out = r.Out.WithContext(context.WithoutCancel(r.Out.Context()))
			}
		},
		Transport:      transport,
		FlushInterval:  -1, // watch events
		ModifyResponse: func(response *http.Response) error { return j.record(replica, response) },
		ErrorLog:       quiet,
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, ErrorLog: quiet, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+token {
				http.Error(w, "not a replica of the demo", http.StatusUnauthorized)
				return
			}
			proxy.ServeHTTP(w, r)
		},
	)}
	go func() { _ = server.Serve(listener) }() // until it is closed
	return "http://" + listener.Addr().String(), token, func() { _ = server.Close() }, nil
}

// record records an answer to a request of a replica, if it is an accepted write of a Website or a child.
func (j *journal) record(replica string, response *http.Response) error {
	request, ok := apipath.Parse(response.Request)
	if !ok || response.StatusCode >= http.StatusMultipleChoices || response.Request.URL.Query().Has("dryRun") ||
		!slices.Contains([]string{"create", "update", "patch", "delete"}, request.Verb) ||
		!slices.Contains([]string{"websites", "configmaps", "deployments", "services"}, request.Resource) {
		return nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))

	obj := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(body, obj); err != nil {
		obj = &metav1.PartialObjectMetadata{} // a write without a version
	}
	w := write{
		by: replica, what: fmt.Sprintf("%s %s %s", request.Verb, request.FullResource(), obj.Name),
		website: obj.Labels[websitev1.LabelWebsite], version: versionOf(obj),
	}
	if request.Resource == "websites" {
		w.website, w.ofStatus = obj.Name, request.Subresource == "status"
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writes = append(j.writes, w)
	return nil
}

// total returns the number of recorded writes.
func (j *journal) total() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.writes)
}

// reconciled returns the number of Websites whose status a replica has written, after this number of writes.
func (j *journal) reconciled(replica string, since int) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	sites := map[string]bool{}
	for _, w := range j.writes[since:] {
		if w.ofStatus && w.by == replica {
			sites[w.website] = true
		}
	}
	return len(sites)
}

// wrong describes the writes by a replica that the Website was not assigned to at that version, and those that it
// cannot judge.
func (j *journal) wrong() (problems []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	seen := map[uint64]bool{}
	for _, w := range j.writes {
		if w.version == 0 {
			problems = append(problems, fmt.Sprintf("%s: %s: the answer has no version", w.by, w.what))
			continue
		}
		// A write that changes nothing returns the version of an earlier one.
		if seen[w.version] {
			continue
		}
		seen[w.version] = true
		// The write by which a replica releases a Website removes its label.
		before, after := j.assigned(w.website, w.version-1), j.assigned(w.website, w.version)
		if w.by != before && w.by != after {
			problems = append(problems, fmt.Sprintf("%s: %s, at version %d, when the Website was assigned to %q",
				w.by, w.what, w.version, before))
		}
	}
	return problems
}

// assigned returns the replica that a Website is assigned to at a version.
func (j *journal) assigned(website string, at uint64) (to string) {
	for _, a := range j.assignments[website] {
		if a.version <= at {
			to = a.to
		}
	}
	return to
}
