// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const appGoMod = "module example.com/m\n\ngo 1.24.0\n\nrequire github.com/grafana/grafana-app-sdk v0.57.0\n"

// The client of a kind as v0.57 of the App SDK generates it, without most methods, and the client of the routes of a
// version. Neither has a header.
const (
	generatedClient = `package v1

import (
	"context"
	"net/http"

	"github.com/grafana/grafana-app-sdk/resource"
)

type LinkClient struct {
	client *resource.TypedClient[*Link, *LinkList]
}

func NewLinkClient(client resource.Client) *LinkClient {
	return &LinkClient{
		client: resource.NewTypedClient[*Link, *LinkList](client, LinkKind()),
	}
}

func NewLinkClientFromGenerator(generator resource.ClientGenerator) (*LinkClient, error) {
	c, err := generator.ClientFor(LinkKind())
	if err != nil {
		return nil, err
	}
	return NewLinkClient(c), nil
}

func (c *LinkClient) Get(ctx context.Context, identifier resource.Identifier) (*Link, error) {
	return c.client.Get(ctx, identifier)
}

func (c *LinkClient) UpdateStatus(ctx context.Context, identifier resource.Identifier, newStatus LinkStatus) error {
	return nil
}

type GetGotoRequest struct {
	Headers http.Header
}

func (c *LinkClient) GetGoto(ctx context.Context, identifier resource.Identifier, request GetGotoRequest) error {
	return nil
}
`
	generatedRoutes = `package v1

import (
	"github.com/grafana/grafana-app-sdk/resource"
)

type CustomRouteClient struct {
	resource.CustomRouteClient
}

func NewCustomRouteClient(client resource.CustomRouteClient) *CustomRouteClient {
	return &CustomRouteClient{client}
}
`
)

func TestOnlyGeneratedClientsAreDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		file, source string
		want         bool
	}{
		"of a kind":       {"v1/link_client_gen.go", generatedClient, true},
		"of a version":    {"v1/client_gen.go", generatedRoutes, true},
		"another file":    {"v1/link_client.go", generatedClient, false},
		"another client":  {"v1/link_client_gen.go", "package v1\n\ntype LinkClient struct{ http.Client }\n", false},
		"with a function": {"v1/link_client_gen.go", generatedClient + "\nfunc Mine() {}\n", false},
		"with a variable": {"v1/link_client_gen.go", generatedClient + "\nvar Mine = 1\n", false},
		"with a type":     {"v1/link_client_gen.go", generatedClient + "\ntype MineRequest struct{}\n", false},
		"with a method": {
			"v1/link_client_gen.go", generatedClient + "\nfunc (c *LinkClient) Mine() {}\n", false,
		},
		"with a method of another type": {
			"v1/link_client_gen.go", generatedClient + "\nfunc (c *Link) Get() {}\n", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "go.mod"), appGoMod)
			writeFile(t, filepath.Join(dir, c.file), c.source)
			writeFile(t, filepath.Join(dir, "m.go"),
				"package m\n\nimport _ \"github.com/grafana/grafana-app-sdk/resource\"\n")
			for _, diff := range []bool{true, false} {
				var out bytes.Buffer
				err := Run(t.Context(), &out, Options{Dir: dir, Force: true, Diff: diff})
				if err != nil && !errors.Is(err, ErrLeft) {
					t.Fatal(err)
				}
				_, kept := sourcesOf(t, dir)[c.file]
				if want := diff || !c.want; kept != want {
					t.Errorf("with --diff %t: kept: %t, want %t", diff, kept, want)
				}
				line := c.file + ": deleted, it was generated\n"
				if diff {
					line = c.file + ": would be deleted, it was generated\n"
				}
				if printed := strings.Contains(out.String(), line); printed != c.want {
					t.Errorf("printed: %t, want %t:\n%s", printed, c.want, out.String())
				}
			}
		})
	}
}

// What generated code was used for is left by hand, with the row for it.
func TestUsesOfRemovedCodeAreLeft(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "go.mod"), appGoMod)
	writeFile(t, filepath.Join(dir, "v1/link_client_gen.go"), generatedClient)
	writeFile(t, filepath.Join(dir, "routes/v1/client_gen.go"), generatedRoutes)
	writeFile(t, filepath.Join(dir, "v1/links_manifest.go"), `package v1

import "github.com/grafana/grafana-app-sdk/app"

// LocalManifest is kept.
func LocalManifest() app.Manifest { return app.NewEmbeddedManifest(app.ManifestData{}) }

// RemoteManifest is removed.
func RemoteManifest() app.Manifest {
	return app.NewAPIServerManifest("links")
}
`)
	writeFile(t, filepath.Join(dir, "m.go"), `package m

import (
	routesv1 "example.com/m/routes/v1"
	"example.com/m/v1"
)

var client, err = v1.NewLinkClientFromGenerator(nil)

var routes = routesv1.NewCustomRouteClient(nil)

var manifest = v1.RemoteManifest()
`)
	var out bytes.Buffer
	if err := Run(t.Context(), &out, Options{Dir: dir, Force: true}); !errors.Is(err, ErrLeft) {
		t.Errorf("got the error %v, want %v", err, ErrLeft)
	}
	_, got, _ := strings.Cut(out.String(), "left by hand:\n")
	want := "  m.go:8: NewLinkClientFromGenerator was generated, and is removed; " +
		"docs/migration/grafana-app-sdk-generated.md, row NewMyKindClient\n" +
		"  m.go:10: NewCustomRouteClient was generated, and is removed; " +
		"docs/migration/grafana-app-sdk-generated.md, row client_gen.go\n" +
		"  m.go:12: RemoteManifest was generated, and is removed; " +
		"docs/migration/grafana-app-sdk-generated.md, row RemoteManifest()\n" +
		"\nnext: go get trueup.dev@latest && go mod tidy && go vet ./...\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	want = `package v1

import "trueup.dev/app"

// LocalManifest is kept.
func LocalManifest() app.Manifest { return app.ManifestData{} }
`
	if diff := cmp.Diff(want, sourcesOf(t, dir)["v1/links_manifest.go"]); diff != "" {
		t.Errorf("the manifest (-want +got):\n%s", diff)
	}
}

func TestStaticMetadata(t *testing.T) {
	for name, c := range map[string]struct{ file, before, want string }{
		"of a parameter, with an import that is missing": {
			"m.go", "import \"example.com/other\"\n\nvar f = func(o other.Object) any { return o.GetStaticMetadata() }\n",
			"import \"example.com/other\"\n\nimport \"trueup.dev/resource\"\n\n" +
				"var f = func(o other.Object) any { return resource.StaticMetadataOf(o) }\n",
		},
		"of a call, with a selected result": {
			"m.go", "import \"github.com/grafana/grafana-app-sdk/resource\"\n\n" +
				"func f(get func() resource.Object) string { return get().GetStaticMetadata().Identifier().Name }\n",
			"import \"trueup.dev/resource\"\n\n" +
				"func f(get func() resource.Object) string { return resource.StaticMetadataOf(get()).Identifier().Name }\n",
		},
		"of a type with such a method": {
			"m.go", "type T struct{}\n\nfunc (T) GetStaticMetadata() int { return 1 }\n\nvar n = T{}.GetStaticMetadata()\n", "",
		},
		"in a generated object": {
			"m_object_gen.go", "import \"example.com/other\"\n\nvar s = other.Link.GetStaticMetadata()\n", "",
		},
		"where resource is a variable": {
			"m.go", "import \"example.com/other\"\n\n" +
				"func f(resource other.Object) any { return resource.GetStaticMetadata() }\n", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "go.mod"), appGoMod)
			writeFile(t, filepath.Join(dir, c.file), "package m\n\n"+c.before)
			writeFile(t, filepath.Join(dir, "other.go"),
				"package m\n\nimport _ \"github.com/grafana/grafana-app-sdk/resource\"\n")
			var out bytes.Buffer
			err := Run(t.Context(), &out, Options{Dir: dir, Force: true})
			wantErr := map[bool]error{true: ErrLeft}[strings.HasPrefix(name, "where")]
			if !errors.Is(err, wantErr) {
				t.Errorf("got the error %v, want %v:\n%s", err, wantErr, out.String())
			}
			if wantErr != nil && !strings.Contains(out.String(), "row obj.GetStaticMetadata()") {
				t.Errorf("the row is not printed:\n%s", out.String())
			}
			if c.want == "" {
				c.want = c.before
			}
			if diff := cmp.Diff("package m\n\n"+c.want, sourcesOf(t, dir)[c.file]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
