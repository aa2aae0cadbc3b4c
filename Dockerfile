# The site in a server of static files: docker build -t machine-foundations . && docker run -p 8080:80 machine-foundations
FROM python:3.11-bookworm AS book
RUN apt-get update && apt-get install --yes --no-install-recommends nodejs npm
WORKDIR /book
COPY . .
RUN make book

FROM nginx:alpine
COPY --from=book /book/_book /usr/share/nginx/html
