SQLC := go run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1
STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: check lint test generate

check: lint test

lint:
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "not formatted by gofmt: $$unformatted"; exit 1; }
	go vet ./...
	$(STATICCHECK) ./...
	$(SQLC) diff

test:
	go test ./...

generate:
	$(SQLC) generate
