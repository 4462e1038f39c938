package httpapi

import (
	"bytes"
	_ "embed" // the document and its page
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
)

// openAPIDocument describes the API as OpenAPI 3.1. TestOpenAPI makes it from
// routes, from the types of the package wire and from their comments.
//
//go:embed openapi.json
var openAPIDocument []byte

//go:embed openapi.html
var openAPIPage string

var docsPage = template.Must(template.New("docs").Funcs(template.FuncMap{
	"kind": (*schema).kindOf, "name": typeName, "typed": (*schema).typeOf, "required": slices.Contains[[]string], "upper": strings.ToUpper,
}).Parse(openAPIPage))

// openAPI gives the document.
func (h *Handler) openAPI(w http.ResponseWriter, _ *request) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPIDocument) // a client that has left needs no answer
	return nil
}

// docs shows the document to people, without a script or anything from elsewhere.
func (h *Handler) docs(w http.ResponseWriter, _ *request) error {
	var d document
	if err := json.Unmarshal(openAPIDocument, &d); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := docsPage.Execute(&b, &d); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	_, _ = w.Write(b.Bytes())
	return nil
}

// A document is what of OpenAPI 3.1 we use, in its order.
type document struct {
	OpenAPI string           `json:"openapi"`
	Info    info             `json:"info"`
	Servers []server         `json:"servers"`
	Tags    []tag            `json:"tags"`
	Paths   ordered[methods] `json:"paths"`

	Components struct {
		Schemas   ordered[*schema]  `json:"schemas"`
		Responses ordered[response] `json:"responses"`
	} `json:"components"`
}

type info struct {
	Title       string `json:"title"`
	Version     string `json:"version"`
	Description string `json:"description"`
	License     struct {
		Name       string `json:"name"`
		Identifier string `json:"identifier"`
	} `json:"license"`
}

type server struct {
	URL         string `json:"url"`
	Description string `json:"description"`
}

type tag struct {
	Name string `json:"name"`
}

// methods are the operations of a path by their method.
type methods = ordered[*operation]

type operation struct {
	ID         string            `json:"operationId"`
	Tags       []string          `json:"tags"`
	Summary    string            `json:"summary"`
	Parameters []field           `json:"parameters,omitempty"`
	Body       *body             `json:"requestBody,omitempty"`
	Responses  ordered[response] `json:"responses"`
}

// A field is a parameter of a request or a header of an answer.
type field struct {
	Name        string  `json:"name,omitempty"`
	In          string  `json:"in,omitempty"`
	Description string  `json:"description"`
	Required    bool    `json:"required,omitempty"`
	Style       string  `json:"style,omitempty"`
	Explode     bool    `json:"explode,omitempty"`
	Schema      *schema `json:"schema"`
}

type body struct {
	Description string           `json:"description,omitempty"`
	Required    bool             `json:"required,omitempty"`
	Content     ordered[content] `json:"content"`
}

type response struct {
	Ref         string           `json:"$ref,omitempty"`
	Description string           `json:"description,omitempty"`
	Headers     ordered[field]   `json:"headers,omitempty"`
	Content     ordered[content] `json:"content,omitempty"`
}

type content struct {
	Schema *schema `json:"schema,omitempty"`
}

// A schema is one of JSON Schema 2020-12.
type schema struct {
	Ref         string           `json:"$ref,omitempty"`
	Description string           `json:"description,omitempty"`
	Type        types            `json:"type,omitempty"`
	Enum        []string         `json:"enum,omitempty"`
	Pattern     string           `json:"pattern,omitempty"`
	Encoding    string           `json:"contentEncoding,omitempty"`
	Required    []string         `json:"required,omitempty"`
	Properties  ordered[*schema] `json:"properties,omitempty"`
	Names       *schema          `json:"propertyNames,omitempty"`
	Others      any              `json:"additionalProperties,omitempty"` // a *schema or false
	Items       *schema          `json:"items,omitempty"`
	Examples    []string         `json:"examples,omitempty"`
}

// typeName gives the name of the type that a reference is to.
func typeName(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// typeOf gives the reference to a type of ours that a value or its items have.
func (s *schema) typeOf() string {
	if s != nil && s.Items != nil {
		return s.Items.Ref
	}
	if s == nil {
		return ""
	}
	return s.Ref
}

// kindOf says in a few words what a value is, beside the type of ours that it
// may have.
func (s *schema) kindOf() string {
	switch {
	case s == nil:
		return "bytes"
	case s.Items != nil && s.Items.Ref != "":
		return "array of"
	case s.Items != nil:
		return "array of " + s.Items.kindOf()
	case s.Encoding != "":
		return s.Encoding
	case s.Pattern != "":
		return "string of digits"
	case s.Others != nil && s.Properties == nil:
		return "object of strings"
	}
	return strings.Join(s.Type, " or ")
}

// types is one type of JSON or several.
type types []string

// MarshalJSON writes a single one without brackets.
func (t types) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

// UnmarshalJSON reads either form.
func (t *types) UnmarshalJSON(src []byte) error {
	if len(src) > 0 && src[0] == '[' {
		return json.Unmarshal(src, (*[]string)(t))
	}
	*t = make(types, 1)
	return json.Unmarshal(src, &(*t)[0])
}

// ordered is a JSON object whose members keep their order.
type ordered[V any] []member[V]

type member[V any] struct {
	Name  string
	Value V
}

// MarshalJSON writes the object.
func (o ordered[V]) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(m.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.Value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// UnmarshalJSON reads an object.
func (o *ordered[V]) UnmarshalJSON(src []byte) error {
	d := json.NewDecoder(bytes.NewReader(src))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(err, fmt.Errorf("%v is no object", t))
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		m := member[V]{Name: fmt.Sprint(name)}
		if err := d.Decode(&m.Value); err != nil {
			return err
		}
		*o = append(*o, m)
	}
	return nil
}

// get gives a member.
func (o ordered[V]) get(name string) (v V, ok bool) {
	for _, m := range o {
		if m.Name == name {
			return m.Value, true
		}
	}
	return v, false
}
