// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"trueup.dev/internal/memapi/apiserver"
	"trueup.dev/sandbox"
)

// endpoint is an API server.
type endpoint struct {
	client    *http.Client
	host      string
	namespace string
}

func endpointOf(t *testing.T, config *rest.Config, namespace string) endpoint {
	t.Helper()
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return endpoint{c, config.Host, namespace}
}

// send returns the status code, the warnings and the content of a response as text.
func (e endpoint) send(t *testing.T, x exchange) string {
	t.Helper()
	fill := strings.NewReplacer("NS", e.namespace)
	request, err := http.NewRequestWithContext(
		t.Context(),
		x.method,
		e.host+fill.Replace(x.path),
		strings.NewReader(fill.Replace(x.body)),
	)
	if err != nil {
		t.Fatal(err)
	}
	if x.body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if x.contentType != "" {
		request.Header.Set("Content-Type", x.contentType)
	}
	if x.accept != "" {
		request.Header.Set("Accept", x.accept)
	}
	request.Header.Set("User-Agent", "conformance/1")
	response, err := e.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintln(response.StatusCode, response.Header["Warning"])
	var content any
	if json.Unmarshal(body, &content) != nil {
		return text + string(body)
	}
	withoutIdentity(content, append([]string{
		"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "time", "description",
	}, x.ignore...))
	formatted, err := json.MarshalIndent(content, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(text+string(formatted), e.namespace, "NS")
}

// age is a cell of a table that says how old an object is. The two servers need not answer in the same second.
var age = regexp.MustCompile(`^\d+[smh]$`)

// withoutIdentity removes fields that differ between servers, and the ages in tables.
func withoutIdentity(value any, fields []string) {
	switch value := value.(type) {
	case map[string]any:
		for name, item := range value {
			if slices.Contains(fields, name) {
				delete(value, name)
			} else {
				withoutIdentity(item, fields)
			}
		}
		if definition, ok := value["format"]; ok && definition == "" {
			delete(value, "format")
		}
	case []any:
		for i, item := range value {
			if text, ok := item.(string); ok && age.MatchString(text) {
				value[i] = "an age"
			}
			withoutIdentity(item, fields)
		}
	}
}

// TestServer_answersAsRealOne sends the same HTTP requests to a real API server and to one in memory.
func TestServer_answersAsRealOne(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	env := sandbox.ForTest(t, sandbox.TestOptions{
		Options: sandbox.Options{Backend: sandbox.ControlPlane, Controllers: []string{"none"}, DisablePods: true},
		CRDs:    []any{fstest.MapFS{"thing.json": {Data: []byte(thingDefinition)}}},
	})
	s := start(t, apiserver.Options{DisableControllers: true})
	reality := endpointOf(t, env.RESTConfig(), env.Namespace)
	memory := endpointOf(t, s.RESTConfig(), "inmemory")
	for path, body := range map[string]string{
		"/api/v1/namespaces": `{"metadata":{"name":"inmemory"}}`,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions": thingDefinition,
	} {
		if got := memory.send(t, exchange{method: "POST", path: path, body: body}); !strings.HasPrefix(got, "201") {
			t.Fatal(got)
		}
	}
	for _, x := range slices.Concat(exchanges, malformed) {
		if diff := cmp.Diff(reality.send(t, x), memory.send(t, x)); diff != "" {
			t.Errorf("%s: %s %s (-real +memory):\n%s", x.name, x.method, x.path, diff)
		}
	}
}
