// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"trueup.dev/internal/memapi/apiserver"
	"trueup.dev/sandbox"
)

// Definitions come and go in random sequences, with objects that may have finalizers, in the same way on a real server
// and on the API in memory.
func TestDefinitions(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	env := sandbox.ForTest(t, sandbox.TestOptions{Options: sandbox.Options{
		Backend: sandbox.ControlPlane, Controllers: []string{"none"}, DisablePods: true,
	}})
	memory, err := apiserver.Start(apiserver.Options{DisableControllers: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := memory.Stop(); err != nil {
			t.Error(err)
		}
	})
	servers := [2]definitionServer{newDefinitionServer(t, env.RESTConfig()), newDefinitionServer(t, memory.RESTConfig())}
	limit := make(chan struct{}, *parallel)
	var running sync.WaitGroup
	for i := range max(4, *sequences/25) {
		running.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			life := &definitionLife{
				Rand: rand.New(rand.NewPCG(*seed, uint64(i))), group: fmt.Sprintf("d%d.%s.fidelity.trueup.dev", i, env.Namespace),
			}
			life.compare(t, servers)
		})
	}
	running.Wait()
}

// definitionLife is a random sequence of requests for one definition and its objects.
type definitionLife struct {
	*rand.Rand

	group string
	log   []string
}

func (l *definitionLife) definition() string {
	return "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things." + l.group
}

func (l *definitionLife) object(name string) string {
	return "/apis/" + l.group + "/v1/namespaces/default/things/" + name
}

// compare sends a sequence to a real server and to ours, and compares the responses, and what both have after each
// request. A real server needs some seconds for that.
func (l *definitionLife) compare(t *testing.T, servers [2]definitionServer) {
	const patience = 30 * time.Second
	requests := []definitionRequest{l.newDefinition()}
	for range 12 {
		requests = append(requests, l.request())
	}
	// in the end, all are gone
	for _, name := range []string{"a", "b"} {
		requests = append(requests, l.release(l.object(name), holdObject))
	}
	requests = append(requests,
		definitionRequest{method: http.MethodDelete, path: l.definition()}, l.release(l.definition(), holdDefinition))
	for _, request := range requests {
		l.log = append(l.log, request.String())
		var got [2]string
		for i, server := range servers {
			got[i] = server.send(t, request)
		}
		if diff := cmp.Diff(got[0], got[1]); diff != "" {
			t.Errorf("response (-real +ours):\n%s\n%s", diff, strings.Join(l.log, "\n"))
			return
		}
		for deadline := time.Now().Add(patience); ; {
			want, ours := l.state(t, servers[0]), l.state(t, servers[1])
			if want == ours {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("state (-real +ours):\n%s\n%s", cmp.Diff(want, ours), strings.Join(l.log, "\n"))
				return
			}
		}
	}
	if state := l.state(t, servers[1]); !strings.HasPrefix(state, "404") {
		t.Errorf("the definition still exists:\n%s\n%s", state, strings.Join(l.log, "\n"))
	}
}

const (
	holdDefinition = "example.com/definition"
	holdObject     = "example.com/object"
)

// definitionRequest is a request. One that releases an object removes a finalizer, if the object has it.
type definitionRequest struct{ method, path, body, releases string }

func (r definitionRequest) String() string {
	return strings.TrimSpace(r.method + " " + r.path + " " + r.releases + " " + r.body)
}

func (l *definitionLife) release(path, finalizer string) definitionRequest {
	return definitionRequest{method: http.MethodPatch, path: path, releases: finalizer}
}

func (l *definitionLife) held(finalizer string) string {
	if l.IntN(2) == 0 {
		return ""
	}
	return `,"finalizers":["` + finalizer + `"]`
}

func (l *definitionLife) newDefinition() definitionRequest {
	path, name := l.definition()[:strings.LastIndex(l.definition(), "/")], "things."+l.group
	return definitionRequest{method: http.MethodPost, path: path, body: `{"apiVersion":"apiextensions.k8s.io/v1",
"kind":"CustomResourceDefinition","metadata":{"name":"` + name + `"` + l.held(holdDefinition) + `},"spec":{"group":"` +
		l.group + `","scope":"Namespaced","names":{"plural":"things","singular":"thing","kind":"Thing",
"listKind":"ThingList"},"versions":[{"name":"v1","served":true,"storage":true,
"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`}
}

func (l *definitionLife) request() definitionRequest {
	name := []string{"a", "b"}[l.IntN(2)]
	switch l.IntN(9) {
	case 0, 1:
		return l.newDefinition()
	case 2, 3:
		return definitionRequest{method: http.MethodDelete, path: l.definition()}
	case 4:
		return l.release(l.definition(), holdDefinition)
	case 5:
		return definitionRequest{method: http.MethodDelete, path: l.object(name)}
	case 6:
		return l.release(l.object(name), holdObject)
	}
	body := `{"apiVersion":"` + l.group + `/v1","kind":"Thing","metadata":{"name":"` + name + `"` + l.held(holdObject) + `}}`
	return definitionRequest{method: http.MethodPost, path: strings.TrimSuffix(l.object(""), "/"), body: body}
}

// state returns what a client sees of a definition and its objects.
func (l *definitionLife) state(t *testing.T, s definitionServer) string {
	var text strings.Builder
	for _, path := range []string{
		l.definition(), strings.TrimSuffix(l.object(""), "/"), "/apis/" + l.group + "/v1",
	} {
		code, content := s.get(t, http.MethodGet, path, "")
		fmt.Fprintln(&text, code, shown(content))
	}
	return text.String()
}

// shown returns what is compared of a response: what servers generate is omitted.
func shown(content any) string {
	var omit func(any)
	omit = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			for _, name := range []string{
				"uid", "resourceVersion", "creationTimestamp", "lastTransitionTime", "managedFields", "storageVersionHash",
			} {
				delete(value, name)
			}
			if _, ok := value["deletionTimestamp"]; ok {
				value["deletionTimestamp"] = "set"
			}
			for _, item := range value {
				omit(item)
			}
		case []any:
			for _, item := range value {
				omit(item)
			}
		}
	}
	omit(content)
	text, err := json.MarshalIndent(content, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

type definitionServer struct {
	client *http.Client
	host   string
}

func newDefinitionServer(t *testing.T, config *rest.Config) definitionServer {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return definitionServer{c, config.Host}
}

// send returns what a client learns from the response: errors, and for objects the code.
func (s definitionServer) send(t *testing.T, r definitionRequest) string {
	if r.releases != "" {
		_, found := s.get(t, http.MethodGet, r.path, "")
		object, _ := found.(map[string]any)
		metadata, _ := object["metadata"].(map[string]any)
		kept := []any{}
		finalizers, _ := metadata["finalizers"].([]any)
		for _, finalizer := range finalizers {
			if finalizer != r.releases {
				kept = append(kept, finalizer)
			}
		}
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": kept}})
		if err != nil {
			t.Error(err)
		}
		r.body = string(body)
	}
	code, content := s.get(t, r.method, r.path, r.body)
	if code < http.StatusBadRequest {
		return fmt.Sprint(code)
	}
	return fmt.Sprint(code, shown(content))
}

func (s definitionServer) get(t *testing.T, method, path, body string) (code int, content any) {
	request, err := http.NewRequestWithContext(t.Context(), method, s.host+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := s.client.Do(request)
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	if json.Unmarshal(text, &content) != nil {
		return response.StatusCode, string(text)
	}
	return response.StatusCode, content
}
